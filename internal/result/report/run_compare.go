// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"

	"github.com/drayage/dray/internal/result/record"
	"github.com/drayage/dray/internal/result/report/document"
	"github.com/drayage/dray/internal/result/report/plot"
	"github.com/drayage/dray/internal/result/verdict"
)

// compared is one link's figures, of the worse direction.
type compared struct {
	column string
	slow   *Measurement // one-way delays
	rates  map[record.Quantity]float64
	lost   float64 // share
	sent   bool
}

// compareLinks compares the links of a run; nil for fewer than two.
func compareLinks(ms []Measurement, a anchors) []document.Block {
	var all []*compared
	byLink := map[string]*compared{}
	for i := range ms {
		m := &ms[i]
		if m.CrossCheck || m.Delay == nil && m.Rate == nil {
			continue
		}
		c := byLink[m.Link]
		if c == nil {
			c = &compared{column: m.Link + " over " + m.Transport, rates: map[record.Quantity]float64{}}
			byLink[m.Link] = c
			all = append(all, c)
		}
		c.take(m)
	}
	if len(all) < 2 {
		return nil
	}
	columns := []document.Block{{Table: comparedTable(all)}}
	if f := comparedFigure(all, a); f != nil {
		columns = append(columns, document.Block{Figures: []document.Figure{*f}})
	}
	return []document.Block{{Columns: columns}}
}

// take keeps the worse of the known directions and a further one.
func (c *compared) take(m *Measurement) {
	if m.Delay != nil && m.Delay.Way == OneWay && (c.slow == nil || slower(m.Delay, c.slow.Delay)) {
		c.slow = m
	}
	if m.Rate != nil {
		if v, ok := c.rates[m.Quantity]; !ok || m.Rate.Mean < v {
			c.rates[m.Quantity] = m.Rate.Mean
		}
	}
	if m.Quantity == record.QStream && m.Loss != nil && m.Loss.Sent > 0 {
		c.sent = true
		c.lost = max(c.lost, float64(m.Loss.Lost-min(m.Loss.Lost, m.Loss.ReceiverDrops))/float64(m.Loss.Sent))
	}
}

// slower compares the highest quantiles that both have.
func slower(a, b *Delay) bool {
	for i := len(a.Quantiles) - 1; i >= 0; i-- {
		if x, y := a.Quantiles[i], b.Quantiles[i]; x.Refused == "" && y.Refused == "" {
			return x.Value > y.Value
		}
	}
	return a.Lost > b.Lost
}

// comparedTable has a column for each link, and the rows that any link has.
func comparedTable(all []*compared) *document.Table {
	out := &document.Table{Label: "Links side by side", Columns: []document.Column{{Head: "Worse direction", Text: true, Key: true}}}
	for _, c := range all {
		out.Columns = append(out.Columns, document.Column{Head: c.column, Name: true})
	}
	row := func(name string, cell func(*compared) (string, bool)) {
		cells := document.Text(name)
		known := false
		for _, c := range all {
			text, ok := cell(c)
			if !ok {
				text = document.None
			}
			known = known || ok
			cells = append(cells, document.Cell{Text: text})
		}
		if known {
			out.Rows = append(out.Rows, document.Row{Cells: cells})
		}
	}
	for i, p := range Percentiles {
		row(fmt.Sprintf("one way, p%g", p), func(c *compared) (string, bool) {
			return quantileOf(c, func(d *Delay) *Quantile { return &d.Quantiles[i] })
		})
	}
	row("variation (PDV), p99", func(c *compared) (string, bool) {
		return quantileOf(c, func(d *Delay) *Quantile { return d.PDV })
	})
	rate := func(name string, q record.Quantity, format func(float64) string) {
		row(name, func(c *compared) (string, bool) {
			v, ok := c.rates[q]
			return format(v), ok
		})
	}
	row("lost of the load", func(c *compared) (string, bool) { return fmt.Sprintf("%.2g", c.lost), c.sent })
	rate("throughput", record.QThroughput, verdict.FormatBitrate)
	rate("packet rate, smallest frames", record.QPacketRate, verdict.FormatPacketRate)
	return out
}

func quantileOf(c *compared, pick func(*Delay) *Quantile) (string, bool) {
	if c.slow == nil {
		return "", false
	}
	q := pick(c.slow.Delay)
	if q == nil || q.Refused != "" {
		return "", false
	}
	return quantileText(*q), true
}

// comparedFigure plots the one-way delays of all links together.
func comparedFigure(all []*compared, a anchors) *document.Figure {
	p := plot.Percentiles{
		ID: "links", Title: "One-way delay against percentile, a curve for each link",
		Desc:   "The slower direction of each link. The table has the same figures.",
		Unit:   "ns",
		Format: verdict.FormatDuration,
	}
	var ids []string
	for _, c := range all {
		if c.slow == nil || c.slow.Delay.Samples == c.slow.Delay.Lost {
			continue
		}
		curve := plot.Curve{Name: c.column, Href: a.href(c.slow.Trials[0]), Points: points(c.slow.dist)}
		if len(curve.Points) > 0 {
			p.Curves = append(p.Curves, curve)
			ids = append(ids, c.slow.Trials...)
		}
	}
	if len(p.Curves) < 2 {
		return nil
	}
	return &document.Figure{Title: "One-way delay of the links", Plot: p, Records: a.refs(ids),
		Note: "The slower direction of each link, each under its own load."}
}
