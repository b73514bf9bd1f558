// SPDX-License-Identifier: Apache-2.0

package trace

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/drayage/dray/internal/result/record"
	"github.com/drayage/dray/internal/result/report"
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
	title := "Path " + r.Path
	over := fmt.Sprintf("from %s to %s", r.From, r.To)
	notes := []string{
		fmt.Sprintf("%s of payload in packets of %d B, %d × %v observed; %s.%s",
			verdict.FormatBitrate(r.Load), r.Payload, r.Rounds, time.Duration(r.Trial*float64(time.Second)), r.followed(), r.terms()),
	}
	notes = append(notes, r.doubts()...)
	if r.Cost != nil {
		notes = append(notes, r.Cost.text(r.Rounds))
	}
	if len(r.Hidden) > 0 {
		notes = append(notes, "Not observed: "+strings.Join(r.Hidden, "; ")+".")
	}
	says := []string{document.Sentence(r.Decides)}
	if r.Slow != "" {
		says = append(says, document.Sentence(r.Slow))
	}
	return document.Section{Title: title, Over: over, Head: title + " " + over, Blocks: []document.Block{{Table: r.delays()}, {Table: r.traffic()}, {Paragraphs: says}, {Notes: notes}}}
}

// delays are the delays of all hops. Percentiles that too few packets support have no column.
func (r *Result) delays() *document.Table {
	t := &document.Table{Label: "Delays of path " + r.Path, Columns: []document.Column{{Head: "Hop", Text: true, Key: true}}}
	var known []float64
	for _, p := range Percentiles {
		if slices.ContainsFunc(r.rows(), func(h Hop) bool { return h.quantile(p) != document.None }) {
			known = append(known, p)
			t.Columns = append(t.Columns, document.Column{Head: fmt.Sprintf("p%g", p), Text: true})
		}
	}
	t.Columns = append(t.Columns, document.Column{Head: "of slow"})
	slow := func(h Hop) string {
		if r.Slowest == 0 {
			return document.None
		}
		return verdict.FormatDuration(h.SlowShare)
	}
	for _, h := range r.rows() {
		cells := []string{h.title()}
		for _, p := range known {
			cells = append(cells, h.quantile(p))
		}
		t.Rows = append(t.Rows, document.Row{Cells: document.Text(append(cells, slow(h))...)})
	}
	return t
}

// traffic is what passed the hops, and the CPUs that it took. It is a table of its own, so that
// both fit into a terminal.
func (r *Result) traffic() *document.Table {
	t := &document.Table{Label: "Traffic on path " + r.Path, Columns: []document.Column{
		{Head: "Hop", Text: true, Key: true}, {Head: "Lost", Text: true}, {Head: "Rate", Text: true}, {Head: "CPUs", Text: true},
	}}
	for _, h := range r.rows() {
		t.Rows = append(t.Rows, document.Row{Cells: document.Text(append([]string{h.title()}, h.traffic()...)...)})
	}
	return t
}

func (r *Result) rows() []Hop { return append(slices.Clone(r.Hops), r.Whole) }

// vague is the detectable ratio from which an interval says nothing.
const vague = 2

func (c *Cost) text(rounds int) string {
	if c.Detectable > vague {
		return fmt.Sprintf("What observation costs is not known: %d rounds are too few to tell a factor of %d; more --rounds can.", rounds, vague)
	}
	return fmt.Sprintf("With observation the median delay is %.3g times that without [%.3g, %.3g].", c.Value, c.Low, c.High)
}

// terms explains the columns of the delays.
func (r *Result) terms() string {
	if r.Slowest == 0 {
		return ""
	}
	return fmt.Sprintf(" Percentiles with 95 %% bounds; “of slow”: its mean in %s.", r.slow())
}

// doubts are what the figures do not show, and the marks.
func (r *Result) doubts() []string {
	var notes []string
	if r.Rounds < r.Asked {
		notes = append(notes, fmt.Sprintf("Interrupted after %d of %d rounds.", r.Rounds, r.Asked))
	}
	if len(r.Stopped) > 0 {
		notes = append(notes, "Not running: "+strings.Join(r.Stopped, ", ")+". The kernel alone passed the packets on there.")
	}
	for _, mark := range r.Marks {
		note := fmt.Sprintf("Mark “%s”: %s.", mark, report.Meaning(mark))
		if mark == record.MarkLoadMissed {
			note = fmt.Sprintf("Mark “%s”: %s were sent of %s, so the figures are of that load.", mark, verdict.FormatBitrate(r.Sent), verdict.FormatBitrate(r.Load))
		}
		notes = append(notes, note)
	}
	return notes
}

func (r *Result) followed() string {
	if r.Sampling == 1 {
		return "every packet was followed"
	}
	return fmt.Sprintf("one of %d packets was followed", r.Sampling)
}

func (h *Hop) title() string {
	if h.Waits {
		return h.Name + ", until taken"
	}
	return h.Name
}

// traffic is the cells of loss, rate and CPUs.
func (h *Hop) traffic() []string {
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
	return []string{lost, rate, cpu}
}

func (h *Hop) quantile(percentile float64) string {
	for _, q := range h.Delay {
		if q.Percentile == percentile {
			return fmt.Sprintf("%s [%s, %s]", verdict.FormatDuration(q.Value), verdict.FormatDuration(q.Low), verdict.FormatDuration(q.High))
		}
	}
	return document.None
}
