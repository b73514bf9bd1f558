// SPDX-License-Identifier: Apache-2.0

package trace

import (
	"fmt"
	"strings"
	"time"

	"github.com/drayage/dray/internal/result/report/document"
	"github.com/drayage/dray/internal/result/verdict"
)

// Document shows traced paths.
func Document(chain string, results []*Result) *document.Document {
	d := &document.Document{Brand: "Drayage trace", Title: chain, Headline: "where packets spend their time", Seen: true}
	for _, r := range results {
		d.Sections = append(d.Sections, r.section())
	}
	return d
}

func (r *Result) section() document.Section {
	t := &document.Table{Label: "Path " + r.Path, Columns: []document.Column{{Head: "Hop", Text: true, Key: true}}}
	for _, p := range Percentiles {
		t.Columns = append(t.Columns, document.Column{Head: fmt.Sprintf("p%g", p), Text: true})
	}
	t.Columns = append(t.Columns, document.Column{Head: "of slow"}, document.Column{Head: "Lost", Text: true}, document.Column{Head: "Rate", Text: true}, document.Column{Head: "CPUs", Text: true})
	for _, h := range append(append([]Hop{}, r.Hops...), r.Whole) {
		t.Rows = append(t.Rows, document.Row{Cells: document.Text(h.cells()...)})
	}
	title := "Path " + r.Path
	over := fmt.Sprintf("from %s to %s", r.From, r.To)
	notes := []string{
		fmt.Sprintf("%s of payload in packets of %d B, %d × %v observed; %s. Percentiles with 95 %% bounds; “of slow”: its mean in the slowest 1 %% of the packets.",
			verdict.FormatBitrate(r.Load), r.Payload, r.Rounds, time.Duration(r.Trial*float64(time.Second)), r.followed()),
	}
	if r.Cost != nil {
		notes = append(notes, fmt.Sprintf("With observation the median delay is %.3g times that without [%.3g, %.3g].", r.Cost.Value, r.Cost.Low, r.Cost.High))
	}
	if len(r.Hidden) > 0 {
		notes = append(notes, "Not observed: "+strings.Join(r.Hidden, "; ")+".")
	}
	says := []string{document.Sentence(r.Decides)}
	if r.Slow != "" {
		says = append(says, document.Sentence(r.Slow))
	}
	return document.Section{Title: title, Over: over, Head: title + " " + over, Blocks: []document.Block{{Table: t}, {Paragraphs: says}, {Notes: notes}}}
}

func (r *Result) followed() string {
	if r.Sampling == 1 {
		return "every packet was followed"
	}
	return fmt.Sprintf("one of %d packets was followed", r.Sampling)
}

func (h *Hop) cells() []string {
	cells := []string{h.Name}
	if h.Waits {
		cells[0] += ", until taken"
	}
	for _, p := range Percentiles {
		cells = append(cells, h.quantile(p))
	}
	cells = append(cells, verdict.FormatDuration(h.SlowShare))
	lost, rate, cpu := document.None, document.None, document.None
	if h.Loss != nil {
		lost = fmt.Sprintf("%d of %d, ≤ %.2g", h.Loss.Lost, h.Loss.Of, h.Loss.High)
	}
	if h.Rate != nil {
		rate = verdict.FormatBitrate(h.Rate.Value)
	}
	if h.CPU != nil {
		cpu = fmt.Sprintf("%.2f [%.2f, %.2f]", h.CPU.Cores.Value, h.CPU.Cores.Low, h.CPU.Cores.High)
	}
	return append(cells, lost, rate, cpu)
}

func (h *Hop) quantile(percentile float64) string {
	for _, q := range h.Delay {
		if q.Percentile == percentile {
			return fmt.Sprintf("%s [%s, %s]", verdict.FormatDuration(q.Value), verdict.FormatDuration(q.Low), verdict.FormatDuration(q.High))
		}
	}
	return document.None
}
