// SPDX-License-Identifier: Apache-2.0

package report

import (
	"bytes"
	"fmt"

	"github.com/drayage/dray/internal/result/record"
	"github.com/drayage/dray/internal/result/report/plot"
	"github.com/drayage/dray/internal/result/verdict"
)

// comparison sets the links of a run side by side, a column each.
type comparison struct {
	Columns []string // "f1u over veth"
	Rows    []comparedRow
	Figure  *figure
}

type comparedRow struct {
	Name  string
	Cells []string // one for each column; "–" where the link has no such figure
}

// compared is what one link contributes: the worse of its directions.
type compared struct {
	column string
	slow   *Measurement // one-way delays
	rates  map[record.Quantity]float64
	lost   float64 // share
	sent   bool
}

// compare returns nil where fewer than two links were measured.
func (d *Data) compare(a anchors) *comparison {
	var all []*compared
	byLink := map[string]*compared{}
	ms := d.Measurements()
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
	out := &comparison{Figure: compareFigure(all, a)}
	for _, c := range all {
		out.Columns = append(out.Columns, c.column)
	}
	out.addRows(all)
	return out
}

// take keeps the worse of what is known and a further direction.
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

func (out *comparison) addRows(all []*compared) {
	row := func(name string, cell func(*compared) (string, bool)) {
		r := comparedRow{Name: name}
		known := false
		for _, c := range all {
			text, ok := cell(c)
			if !ok {
				text = "–"
			}
			known = known || ok
			r.Cells = append(r.Cells, text)
		}
		if known {
			out.Rows = append(out.Rows, r)
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

// compareFigure draws the one-way delays of all links over each other.
func compareFigure(all []*compared, a anchors) *figure {
	p := plot.Percentiles{
		ID: "links", Title: "One-way delay against percentile, a curve for each link",
		Desc:   "The slower direction of each link. The table beside holds the same figures.",
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
	return &figure{Title: "One-way delay of the links", Plot: p.SVG(), Records: a.refs(ids),
		Note: "The slower direction of each link, each under its own load."}
}

// writeComparison prints the links side by side, where there are several.
func (d *Data) writeComparison(w *bytes.Buffer, width int) error {
	c := d.compare(anchors{})
	if c == nil {
		return nil
	}
	t := table{head: []string{"WORSE DIRECTION"}}
	for _, column := range c.Columns {
		t.head = append(t.head, plain(column))
	}
	for _, r := range c.Rows {
		t.add(append([]string{r.Name}, r.Cells...)...)
	}
	if err := t.write(w, width); err != nil {
		return err
	}
	w.WriteString("\n")
	return nil
}
