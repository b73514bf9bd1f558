// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"html/template"
	"maps"
	"slices"
	"strings"

	"github.com/drayage/dray/internal/plan"
	"github.com/drayage/dray/internal/result/record"
	"github.com/drayage/dray/internal/result/report/plot"
	"github.com/drayage/dray/internal/result/stats"
	"github.com/drayage/dray/internal/result/verdict"
	"github.com/drayage/dray/internal/spec/chain"
)

type linkView struct {
	ID        string
	Name      string
	Transport string
	Reason    string
	Class     string
	Glyph     string
	Word      string
	Facts     []fact
	Figures   []figure
	Delays    []delayRow
	Rates     []rateRow
	Note      string // on the rows
	Rejected  []plan.Rejected
	Evidence  []plan.Evidence
}

// figure is a plot with the records that it was made from.
type figure struct {
	Title   string
	Plot    template.HTML
	Note    string
	Records []ref
}

type delayRow struct {
	Way, Direction, Load string
	Cells                []string // p50 … max, PDV at p99, lateness of the sender at p99
	N, Lost              int64
	Marks                []string
	Records              []ref
}

type rateRow struct {
	Quantity, Direction, Load, Value, Lost, Trials string
	Marks                                          []string
	Records                                        []ref
}

func (d *Data) linkViews(a anchors) []linkView {
	ms := d.Measurements()
	var out []linkView
	for i, l := range d.Plan.Links {
		var mine []Measurement
		for _, m := range ms {
			if m.Link == l.Name {
				mine = append(mine, m)
			}
		}
		word := wordOf(d.Verdicts, l.Name)
		v := linkView{
			ID: fmt.Sprintf("link-%d", i+1), Name: l.Name, Transport: l.Transport, Reason: l.Reason,
			Class: wordClass(word), Glyph: glyph(word), Word: word,
			Facts: d.linkFacts(l), Rejected: l.Rejected, Evidence: l.Evidence,
		}
		v.addRows(mine, a)
		if crossChecked(mine) {
			v.Note = crossCheckNote
		}
		v.Figures = append(delayFigures(fmt.Sprintf("p%d", i+1), l, mine, a), rateFigures(fmt.Sprintf("b%d", i+1), l, mine, a)...)
		out = append(out, v)
	}
	return out
}

func (v *linkView) addRows(ms []Measurement, a anchors) {
	for _, m := range ms {
		way, refs := m.From+" → "+m.To, a.refs(append(slices.Clone(m.Trials), m.Failed...))
		if m.Rate != nil || m.Delay == nil {
			v.Rates = append(v.Rates, rateRow{
				quantityName(m), way, loadText(m), valueText(m), lossText(m), trialsText(m), m.Marks, refs,
			})
		}
		if m.Delay == nil {
			continue
		}
		row := delayRow{Way: delayText(m), Direction: way, Load: loadText(m), N: m.Delay.Samples, Lost: m.Delay.Lost, Marks: m.Marks, Records: refs}
		for _, q := range m.Delay.Quantiles {
			row.Cells = append(row.Cells, quantileText(q))
		}
		row.Cells = append(row.Cells, longest(m.Delay), optional(m.Delay.PDV), optional(m.Delay.Lateness))
		v.Delays = append(v.Delays, row)
	}
}

func optional(q *Quantile) string {
	if q == nil {
		return "–"
	}
	return quantileText(*q)
}

// linkFacts is how the link was set up, as far as the run says.
func (d *Data) linkFacts(l plan.Link) []fact {
	fs := []fact{{"Isolation", string(l.Isolation)}, {"MTU", fmt.Sprintf("%d B", l.MTU)}}
	if l.Load > 0 {
		fs = append(fs, fact{"Declared load", l.Load.String()})
	}
	for _, r := range d.Run.Links {
		if r.Name != l.Name {
			continue
		}
		if r.Engine != "" {
			fs = append(fs, fact{"Engine", r.Engine})
		}
		for _, end := range slices.Sorted(maps.Keys(r.Addresses)) {
			fs = append(fs, fact{end, r.Addresses[end]})
		}
		for _, end := range slices.Sorted(maps.Keys(r.Qdiscs)) {
			fs = append(fs, fact{"Qdisc of " + end, r.Qdiscs[end]})
		}
		if len(r.Offloads) > 0 {
			fs = append(fs, fact{"Offloads changed", strings.Join(r.Offloads, "; ")})
		}
	}
	return fs
}

// delayFigures are latency against percentile, one small plot for each
// direction, one curve for each load.
func delayFigures(id string, l plan.Link, ms []Measurement, a anchors) []figure {
	var ways []string
	groups := map[string][]Measurement{}
	for _, m := range ms {
		if m.dist == nil || m.Delay.Samples == m.Delay.Lost {
			continue
		}
		way := m.From + " → " + m.To
		if groups[way] == nil {
			ways = append(ways, way)
		}
		groups[way] = append(groups[way], m)
	}
	var out []figure
	for i, way := range ways {
		if f, ok := delayFigure(fmt.Sprintf("%s-%d", id, i), way, l, groups[way], a); ok {
			out = append(out, f)
		}
	}
	return out
}

func delayFigure(id, way string, l plan.Link, ms []Measurement, a anchors) (figure, bool) {
	p := plot.Percentiles{
		ID: id, Title: "Delay against percentile, " + way,
		Desc:   "One curve for each load and instrument. The table below holds the same figures.",
		Format: func(ns float64) string { return verdict.FormatDuration(ns) },
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
	if len(p.Curves) == 0 {
		return figure{}, false
	}
	return figure{
		Title: "Delay, " + way, Plot: p.SVG(), Records: a.refs(ids),
		Note: "One-way times are stamped in each packet, and judged; round trips are a cross-check. A curve ends where fewer than ten samples lie beyond.",
	}, true
}

func curveName(m Measurement) string {
	if m.Load == 0 {
		return m.Delay.Way + ", no load"
	}
	return m.Delay.Way + ", " + loadText(m)
}

// points samples a distribution densely enough for a smooth curve, as far as
// its samples reach; the percentiles of the table are marked.
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

// round removes what binary fractions add to a percentile.
func round(p float64) float64 {
	const unit = 1e8
	return float64(int64(p*unit+0.5)) / unit
}

// rateFigures are bars with intervals: TCP goodput, and packets per second.
func rateFigures(id string, l plan.Link, ms []Measurement, a anchors) []figure {
	var out []figure
	kinds := []struct {
		quantity record.Quantity
		title    string
		limits   []plot.Limit
	}{
		{record.QThroughput, goodputTitle(l), bitrateLimits(l.Requires)},
		{record.QPacketRate, "Packets received, frames of 64 B (IPv6: 84 B)", packetLimits(l.Requires)},
	}
	for _, k := range kinds {
		if f, ok := rateFigure(id+"-"+string(k.quantity), k.title, k.quantity, k.limits, ms, a); ok {
			out = append(out, f)
		}
	}
	return out
}

func rateFigure(id, title string, q record.Quantity, limits []plot.Limit, ms []Measurement, a anchors) (figure, bool) {
	b := plot.Bars{ID: id, Title: title, Desc: "Means over trials with 95 % intervals; the table below holds the same figures.", Limits: limits}
	var ids []string
	for _, m := range ms {
		if m.Quantity != q || m.Rate == nil || q == record.QPacketRate && m.CrossCheck {
			continue
		}
		unit := m.Rate.Unit
		b.Format = func(v float64) string { return rateText(unit, v) }
		bar := plot.Bar{Label: m.From + " → " + m.To, Text: rateText(unit, m.Rate.Mean), Mean: m.Rate.Mean, Low: m.Rate.Low, High: m.Rate.High}
		for i, v := range m.Rate.Values {
			tip := fmt.Sprintf("record %d: %s", a[m.Trials[i]], rateText(unit, v))
			bar.Values = append(bar.Values, plot.Value{Value: v, Tip: tip, Href: a.href(m.Trials[i])})
		}
		b.Bars = append(b.Bars, bar)
		ids = append(ids, m.Trials...)
	}
	if len(b.Bars) == 0 {
		return figure{}, false
	}
	return figure{
		Title: title, Plot: b.SVG(), Records: a.refs(ids),
		Note: "Bars are means, brackets 95 % intervals (Student t), dots single trials.",
	}, true
}

// goodputTitle: a port that is no interface carries packets, and no TCP.
func goodputTitle(l plan.Link) string {
	if verdict.FromPlan(l).Native {
		return "Payload received"
	}
	return "TCP goodput"
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
