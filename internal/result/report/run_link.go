// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/drayage/dray/internal/plan"
	"github.com/drayage/dray/internal/result/record"
	"github.com/drayage/dray/internal/result/report/document"
	"github.com/drayage/dray/internal/result/report/plot"
	"github.com/drayage/dray/internal/result/stats"
	"github.com/drayage/dray/internal/result/verdict"
	"github.com/drayage/dray/internal/spec/chain"
)

// linkSections has a section for each link of the plan, then one for each further
// measured link.
func (d *Data) linkSections(ms []Measurement, a anchors) []document.Section {
	links := d.judged()
	for _, m := range ms {
		if !slices.ContainsFunc(links, func(l plan.Link) bool { return l.Name == m.Link }) {
			links = append(links, plan.Link{Name: m.Link, Transport: m.Transport})
		}
	}
	var out []document.Section
	for i, l := range links {
		var mine []Measurement
		for _, m := range ms {
			if m.Link == l.Name {
				mine = append(mine, m)
			}
		}
		out = append(out, d.linkSection(fmt.Sprint(i+1), l, mine, a))
	}
	return out
}

func (d *Data) linkSection(number string, l plan.Link, ms []Measurement, a anchors) document.Section {
	title, over := "Link "+l.Name, "over "+l.Transport
	switch {
	case l.Course != nil:
		title, over = "Path "+l.Name, courseText(l)
	case l.Transport == "":
		over = "over no transport"
	}
	s := document.Section{ID: "link-" + number, Title: title, Over: over, Head: title + " " + over, Lead: document.Sentence(l.Reason)}
	if len(ms) == 0 {
		s.On = document.Page
	}
	if figures := append(delayFigures("p"+number, l, ms, a), rateFigures("b"+number, l, ms, a)...); len(figures) > 0 {
		s.Blocks = append(s.Blocks, document.Block{Figures: figures})
	}
	rates, delays, windows := rateTable(l, ms, a), delayTable(l, ms, a), windowTable(l, ms, a)
	if len(rates.Rows) > 0 {
		s.Blocks = append(s.Blocks, document.Block{Title: "Rates, loss and packet size", Table: rates})
	}
	if len(delays.Rows) > 0 {
		s.Blocks = append(s.Blocks, document.Block{Title: "Delays", Table: delays})
	}
	if len(windows.Rows) > 0 {
		s.Blocks = append(s.Blocks, document.Block{Title: "Receive windows", Table: windows})
	}
	if crossChecked(ms) {
		s.Blocks = append(s.Blocks, document.Block{Notes: []string{crossCheckNote}})
	}
	columns := []document.Block{d.setUp(l)}
	if len(l.Rejected) > 0 {
		rejected := document.Block{Title: "Other transports"}
		for _, r := range l.Rejected {
			rejected.List = append(rejected.List, document.Fact{Name: r.Transport, Text: r.Reason})
		}
		columns = append(columns, rejected)
	}
	s.Blocks = append(s.Blocks, document.Block{On: document.Page, Columns: columns})
	if len(l.Evidence) > 0 {
		s.Blocks = append(s.Blocks, document.Block{Title: "What the plan expected", On: document.Page, Table: evidenceTable(l)})
	}
	return s
}

func rateTable(l plan.Link, ms []Measurement, a anchors) *document.Table {
	t := &document.Table{Label: "Rates of link " + l.Name, Columns: []document.Column{
		{Head: "Quantity", Text: true, Key: true}, {Head: "Direction", Text: true, Key: true}, {Head: "Load"},
		{Head: "Mean, 95 % interval", Text: true}, {Head: "Lost", Text: true}, {Head: "Trials"},
	}}
	for _, m := range ms {
		if m.Rate != nil || m.Delay == nil {
			t.Rows = append(t.Rows, m.row(a, quantityName(m), m.way(), loadText(m), valueText(m), lossText(m), trialsText(m)))
		}
	}
	return t
}

func delayTable(l plan.Link, ms []Measurement, a anchors) *document.Table {
	t := &document.Table{Label: "Delays of link " + l.Name, Columns: []document.Column{
		{Head: "Delay", Text: true, Key: true}, {Head: "Direction", Text: true, Key: true}, {Head: "Load", Key: true},
	}}
	for _, p := range Percentiles {
		t.Columns = append(t.Columns, document.Column{Head: fmt.Sprintf("p%g", p)})
	}
	t.Columns = append(t.Columns, document.Column{Head: "max"},
		document.Column{Head: "PDV p99", Tip: "packet delay variation above the least of its trial, RFC 5481", On: document.Page},
		document.Column{Head: "sender late p99", Tip: "how late the generator itself sent; not part of the delay", On: document.Page},
		document.Column{Head: "n"}, document.Column{Head: "lost"})
	for _, m := range ms {
		if m.Delay == nil {
			continue
		}
		cells := []string{delayText(m), m.way(), loadText(m)}
		for _, q := range m.Delay.Quantiles {
			cells = append(cells, quantileText(q))
		}
		cells = append(cells, longest(m.Delay), optional(m.Delay.PDV), optional(m.Delay.Lateness), fmt.Sprint(m.Delay.Samples), fmt.Sprint(m.Delay.Lost))
		t.Rows = append(t.Rows, m.row(a, cells...))
	}
	return t
}

func (m *Measurement) way() string { return m.From + " → " + m.To }

func (m *Measurement) row(a anchors, cells ...string) document.Row {
	return document.Row{Cells: document.Text(cells...), Marks: m.Marks, Records: a.refs(slices.Concat(m.Trials, m.Failed))}
}

func optional(q *Quantile) string {
	if q == nil {
		return document.None
	}
	return quantileText(*q)
}

func evidenceTable(l plan.Link) *document.Table {
	t := &document.Table{Label: "Evidence for link " + l.Name, Columns: []document.Column{
		{Head: "Requirement", Text: true}, {Head: "Required", Text: true}, {Head: "Expected", Text: true}, {Head: "Source", Text: true}, {Head: "Enough", Text: true},
	}}
	for _, e := range l.Evidence {
		t.Rows = append(t.Rows, document.Row{Cells: document.Text(e.Requirement, e.Required, e.Expected, e.Source, yesNo(e.Meets))})
	}
	return t
}

// setUp is how a link, or the links of a path, were set up.
func (d *Data) setUp(l plan.Link) document.Block {
	if l.Course != nil {
		return document.Block{Title: "Made of", List: d.pathFacts(l)}
	}
	return document.Block{Title: "Set up as", List: d.linkFacts(l)}
}

// linkFacts is the link's setup, as far as the run records it.
func (d *Data) linkFacts(l plan.Link) []document.Fact {
	fs := []document.Fact{{Name: "Isolation", Text: string(l.Isolation)}, {Name: "MTU", Text: fmt.Sprintf("%d B", l.MTU)}}
	if l.Load > 0 {
		fs = append(fs, document.Fact{Name: "Declared load", Text: l.LoadText()})
	}
	for _, r := range d.Run.Links {
		if r.Name != l.Name {
			continue
		}
		if r.Engine != "" {
			fs = append(fs, document.Fact{Name: "Engine", Text: r.Engine})
		}
		for _, end := range slices.Sorted(maps.Keys(r.Addresses)) {
			fs = append(fs, document.Fact{Name: end, Text: r.Addresses[end]})
		}
		for _, end := range slices.Sorted(maps.Keys(r.Qdiscs)) {
			fs = append(fs, document.Fact{Name: "Qdisc of " + end, Text: r.Qdiscs[end]})
		}
		if len(r.Offloads) > 0 {
			fs = append(fs, document.Fact{Name: "Offloads changed", Text: strings.Join(r.Offloads, "; ")})
		}
	}
	return append(fs, d.Run.Cluster.pods(l.Name)...)
}

// delayFigures plot latency against percentile: one small plot for each direction, one
// curve for each load, and one scale for all.
func delayFigures(id string, l plan.Link, ms []Measurement, a anchors) []document.Figure {
	var ways []string
	groups := map[string][]Measurement{}
	for _, m := range ms {
		if m.dist == nil || m.Delay.Samples == m.Delay.Lost {
			continue
		}
		if groups[m.way()] == nil {
			ways = append(ways, m.way())
		}
		groups[m.way()] = append(groups[m.way()], m)
	}
	var plots []plot.Percentiles
	var records [][]string
	for i, way := range ways {
		if p, ids := delayPlot(fmt.Sprintf("%s-%d", id, i), way, l, groups[way], a); len(p.Curves) > 0 {
			plots, records = append(plots, p), append(records, ids)
		}
	}
	plot.Align(plots)
	var out []document.Figure
	for i, p := range plots {
		out = append(out, document.Figure{
			Title: strings.Replace(p.Title, " against percentile", "", 1), Plot: p, Records: a.refs(records[i]),
			Note: "One-way times come from a stamp in each packet and are judged; round trips are a cross-check. A curve ends where fewer than ten samples remain beyond it. Both directions have the same scale.",
		})
	}
	return out
}

func delayPlot(id, way string, l plan.Link, ms []Measurement, a anchors) (plot.Percentiles, []string) {
	p := plot.Percentiles{
		ID: id, Title: "Delay against percentile, " + way,
		Desc:   "One curve for each load and instrument. The table below has the same figures.",
		Unit:   "ns",
		Format: verdict.FormatDuration,
	}
	var ids []string
	for _, m := range ms {
		c := plot.Curve{Name: curveName(m), Href: a.href(m.Trials[0]), Points: points(m.dist)}
		if len(c.Points) > 0 {
			p.Curves = append(p.Curves, c)
			ids = append(ids, m.Trials...)
		}
	}
	if l.Requires.Latency > 0 {
		pct := float64(l.Requires.Percentile)
		if pct == 0 {
			pct = verdict.DefaultPercentile
		}
		p.Limits = []plot.Limit{{
			Value: float64(l.Requires.Latency), Percentile: pct,
			Text: fmt.Sprintf("budget %s, one way, at p%g", l.Requires.Latency, pct),
		}}
	}
	return p, ids
}

func curveName(m Measurement) string {
	if m.Load == 0 {
		return m.Delay.Way + ", no load"
	}
	return m.Delay.Way + ", " + loadText(m)
}

// points samples a distribution densely enough for a smooth curve, as far as its
// samples reach; the table's percentiles are marked.
func points(d *stats.Dist) []plot.Point {
	var out []plot.Point
	for _, p := range curvePercentiles {
		v, err := d.Quantile(p)
		if err != nil {
			break
		}
		out = append(out, plot.Point{Percentile: p, Value: float64(v), Marked: slices.Contains(Percentiles, p)})
	}
	return out
}

// curvePercentiles are about twenty for each nine, from 0 to 99.9999.
var curvePercentiles = func() []float64 {
	var out []float64
	for tail := 1.0; tail > 1e-6; tail /= 10 {
		for i := 10.0; i > 1; i -= 0.5 {
			out = append(out, round(100*(1-tail*i/10)))
		}
	}
	return out
}()

// round removes binary rounding errors from a percentile.
func round(p float64) float64 {
	const unit = 1e8
	return float64(int64(p*unit+0.5)) / unit
}

// rateFigures plot bars with intervals: payload, and packets per second.
func rateFigures(id string, l plan.Link, ms []Measurement, a anchors) []document.Figure {
	var out []document.Figure
	kinds := []struct {
		quantity record.Quantity
		title    string
		limits   []plot.Limit
	}{
		{record.QThroughput, goodputTitle(l), bitrateLimits(l.Requires)},
		{record.QPacketRate, "Packets received, frames of 64 B (IPv6: 84 B)", packetLimits(l.Requires)},
	}
	for _, k := range kinds {
		if f, ok := rateFigure(id+"-"+string(k.quantity), k.title+", link "+l.Name, k.quantity, k.limits, ms, a); ok {
			out = append(out, f)
		}
	}
	return out
}

func rateFigure(id, title string, q record.Quantity, limits []plot.Limit, ms []Measurement, a anchors) (document.Figure, bool) {
	b := plot.Bars{ID: id, Title: title, Desc: "Means over trials with 95 % intervals; the table below has the same figures.", Limits: limits}
	var ids []string
	for _, m := range ms {
		if m.Quantity != q || m.Rate == nil || m.CrossCheck {
			continue
		}
		unit := m.Rate.Unit
		b.Unit = unit
		b.Format = func(v float64) string { return rateText(unit, v) }
		bar := plot.Bar{Label: m.way(), Text: rateText(unit, m.Rate.Mean), Mean: m.Rate.Mean, Low: m.Rate.Low, High: m.Rate.High}
		for i, v := range m.Rate.Values {
			tip := fmt.Sprintf("record %d: %s", a[m.Trials[i]], rateText(unit, v))
			bar.Values = append(bar.Values, plot.Value{Value: v, Tip: tip, Href: a.href(m.Trials[i])})
		}
		b.Bars = append(b.Bars, bar)
		ids = append(ids, m.Trials...)
	}
	if len(b.Bars) == 0 {
		return document.Figure{}, false
	}
	return document.Figure{
		Title: title, Plot: b, Records: a.refs(ids),
		Note: "Bars are means, brackets 95 % intervals (on logarithms), dots single trials.",
	}, true
}

// goodputTitle names the traffic of the bitrates.
func goodputTitle(l plan.Link) string {
	if l.Traffic == chain.TrafficTCP {
		return "TCP goodput"
	}
	return "UDP payload received"
}

func bitrateLimits(r chain.Requires) []plot.Limit {
	var out []plot.Limit
	if r.MinBitrate > 0 {
		out = append(out, plot.Limit{Value: float64(r.MinBitrate), Text: "at least " + r.MinBitrate.String()})
	}
	if r.MaxBitrate > 0 {
		out = append(out, plot.Limit{Value: float64(r.MaxBitrate), Text: "at most " + r.MaxBitrate.String()})
	}
	return out
}

func packetLimits(r chain.Requires) []plot.Limit {
	if r.PacketRate == 0 {
		return nil
	}
	return []plot.Limit{{Value: float64(r.PacketRate), Text: "at least " + r.PacketRate.String()}}
}
