// SPDX-License-Identifier: Apache-2.0

package compare

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/drayage/dray/internal/result/record"
	"github.com/drayage/dray/internal/result/report"
	"github.com/drayage/dray/internal/result/report/document"
	"github.com/drayage/dray/internal/result/verdict"
)

// Schema is the version of the object that JSON writes.
const Schema = 1

// JSON writes the comparison as one object.
func (c *Comparison) JSON(w io.Writer) error {
	return document.JSON(w, struct {
		Schema int `json:"schema"`
		*Comparison
	}{Schema, c})
}

// Text writes the comparison: a table for each link or configuration, and a summary. A
// width of 0 means no limit.
func (c *Comparison) Text(w io.Writer, width int) error {
	blocks := c.head()
	for rows := c.Rows; len(rows) > 0; {
		n := 1
		for n < len(rows) && rows[n].Cell.group() == rows[0].Cell.group() {
			n++
		}
		blocks = append(blocks, group(rows[:n]))
		rows = rows[n:]
	}
	return document.Blocks(w, width, append(blocks, document.Block{Notes: c.summary()}, c.legend())...)
}

// legend explains the marks of all rows.
func (c *Comparison) legend() document.Block {
	var names []string
	for _, r := range c.Rows {
		names = merge(merge(names, r.A.Marks), r.B.Marks)
	}
	slices.Sort(names)
	b := document.Block{Title: "What the marks mean"}
	for _, m := range names {
		if meaning := report.Meaning(m); meaning != "" {
			b.List = append(b.List, document.Fact{Name: m, Text: meaning})
		}
	}
	return b
}

func (c *Comparison) head() []document.Block {
	var runs []document.Fact
	add := func(name string, r *Run) {
		runs = append(runs, document.Fact{Name: name, Text: fmt.Sprintf("%s (%s, %s)", r.Path, r.ID, r.Started.UTC().Format("2006-01-02 15:04:05 UTC"))})
		for _, warning := range r.Warnings {
			runs = append(runs, document.Fact{Name: name, Text: warning})
		}
	}
	add("A", c.A)
	add("B", c.B)
	for _, r := range c.Same {
		add("Like A", r)
	}
	blocks := []document.Block{{List: runs}}
	if len(c.Besides) > 0 {
		blocks = append(blocks, document.Block{Title: "The machines also differ", Points: c.Besides})
	}
	return blocks
}

func group(rows []Row) document.Block {
	if side := rows[0].Reason; side == onlyInA || side == onlyInB {
		if !slices.ContainsFunc(rows, func(r Row) bool { return r.Reason != side }) {
			return document.Block{Paragraphs: []string{fmt.Sprintf("%s, %s: %s", title(rows), side, count(len(rows), "figure"))}}
		}
	}
	t := &document.Table{Columns: []document.Column{
		{Head: "Figure", Key: true}, {Head: "Direction", Key: true}, {Head: "Load"}, {Head: "A (trials)"}, {Head: "B (trials)"}, {Head: "B against A, 95 % interval"}, {Head: "B is"},
	}}
	for _, r := range rows {
		t.Rows = append(t.Rows, document.Row{Marks: marks(r), Cells: document.Text(
			r.Metric, directionText(r.Cell), loadText(r.Cell), sideText(r.A, r.Unit), sideText(r.B, r.Unit), r.changeText(), r.outcomeText())})
	}
	return document.Block{Paragraphs: []string{title(rows)}, Table: t}
}

// title names a table, with both transports if they differ.
func title(rows []Row) string {
	var a, b []string
	for _, r := range rows {
		a, b = merge(a, r.A.Transports), merge(b, r.B.Transports)
	}
	c := rows[0].Cell
	x, y := strings.Join(a, ", "), strings.Join(b, ", ")
	switch {
	case c.Config != "":
		return configText(c)
	case x == y:
		return "Link " + c.Link + " over " + x
	case x == "" || y == "":
		return "Link " + c.Link + " over " + x + y
	}
	return fmt.Sprintf("Link %s over %s in A, over %s in B", c.Link, x, y)
}

// configText omits missing parts of the configuration, such as the transport of a
// generator alone.
func configText(c Cell) string {
	parts := strings.FieldsFunc(c.Config, func(r rune) bool { return r == '/' })
	if c.Quantity == record.QCeiling {
		return "No transport, " + strings.Join(parts, "/")
	}
	return strings.Join(parts, "/")
}

func directionText(c Cell) string {
	if c.From == "" && c.To == "" {
		return document.None
	}
	return c.From + " → " + c.To
}

func merge(all, more []string) []string {
	for _, s := range more {
		if !slices.Contains(all, s) {
			all = append(all, s)
		}
	}
	return all
}

func loadText(c Cell) string {
	bits, err := strconv.ParseUint(c.Load, 10, 64)
	switch {
	case err != nil || c.Config != "":
		return c.Load
	case bits == 0:
		return "none"
	}
	return verdict.FormatBitrate(float64(bits))
}

func sideText(s Side, unit string) string {
	if s.Value == nil {
		return document.None
	}
	text := fmt.Sprintf("%s (%d)", quantityText(*s.Value, unit), s.N)
	if s.Failed > 0 {
		text += fmt.Sprintf(", %d failed", s.Failed)
	}
	if n := len(s.Outliers); n > 0 {
		text += fmt.Sprintf(", %d flagged", n)
	}
	return text
}

// quantityText prints a figure with its unit.
func quantityText(v float64, unit string) string {
	switch unit {
	case bitrate:
		return verdict.FormatBitrate(v)
	case packetRate:
		return verdict.FormatPacketRate(v)
	case nanosecond:
		if v > 0 && v < 1 {
			return fmt.Sprintf("%.2gns", v)
		}
		return verdict.FormatDuration(v)
	case lossRatio, ringShare, holding:
		return percent(v)
	case perSecond:
		return fmt.Sprintf("%.0f/s", v)
	case octets:
		return bytesText(v)
	case cycles:
		return fmt.Sprintf("%.0f", v)
	case watt:
		return fmt.Sprintf("%.3g W", v)
	case joule:
		return fmt.Sprintf("%.3g µJ", v*1e6)
	}
	return fmt.Sprintf("%.3g", v)
}

// percent prints a share with three significant digits, without an exponent.
func percent(v float64) string {
	v *= 100
	if v == 0 {
		return "0 %"
	}
	digits := max(0, 2-int(math.Floor(math.Log10(math.Abs(v)))))
	return strconv.FormatFloat(v, 'f', min(digits, 9), 64) + " %"
}

func bytesText(v float64) string {
	for _, unit := range []string{"B", "KiB", "MiB", "GiB"} {
		if v < 9999.5 || unit == "GiB" {
			return fmt.Sprintf("%.4g %s", v, unit)
		}
		v /= 1024
	}
	return ""
}

// signed prints a difference with its sign. Differences of shares are in percentage
// points, pp, to distinguish them from a change in percent.
func signed(v float64, unit string) string {
	text := quantityText(math.Abs(v), unit)
	if unit == lossRatio {
		text = strings.Replace(text, "%", "pp", 1)
	}
	if v < 0 {
		return "−" + text
	}
	return "+" + text
}

// changeText prints a ratio in percent if its whole interval is near 1, and otherwise
// as a factor.
func (r Row) changeText() string {
	switch {
	case r.Outcome == NotCompared:
		return document.None
	case r.Difference != nil:
		d := r.Difference
		return fmt.Sprintf("%s (%s … %s)", signed(d.Value, r.Unit), signed(d.Low, r.Unit), signed(d.High, r.Unit))
	}
	if c := r.Ratio; c.Low > 0.5 && c.High < 2 {
		share := func(v float64) string { return signed(v-1, ringShare) }
		return fmt.Sprintf("%s (%s … %s)", share(c.Value), share(c.Low), share(c.High))
	}
	return fmt.Sprintf("×%.3g (×%.3g … ×%.3g)", r.Ratio.Value, r.Ratio.Low, r.Ratio.High)
}

func (r Row) outcomeText() string {
	s := string(r.Outcome)
	if r.Reason != "" {
		s += ": " + r.Reason
	}
	return s
}

// marks are both sides' marks, once; a mark of one side names it.
func marks(r Row) []string {
	var parts []string
	for _, m := range merge(slices.Clone(r.A.Marks), r.B.Marks) {
		switch inA, inB := slices.Contains(r.A.Marks, m), slices.Contains(r.B.Marks, m); {
		case inA && !inB:
			m += " (A)"
		case inB && !inA:
			m += " (B)"
		}
		parts = append(parts, m)
	}
	return parts
}

// summary sums the comparison up, one statement a line.
func (c *Comparison) summary() []string {
	n := map[Outcome]int{}
	sure := 0
	for _, r := range c.Rows {
		n[r.Outcome]++
		if r.Holm != nil && *r.Holm < 0.05 && (r.Outcome == Better || r.Outcome == Worse) {
			sure++
		}
	}
	compared := len(c.Rows) - n[NotCompared]
	lines := []string{fmt.Sprintf("%s compared: %d better, %d worse, %d indistinguishable; %d not compared.",
		count(compared, "figure"), n[Better], n[Worse], n[Indistinguishable], n[NotCompared])}
	if compared == 0 {
		return lines
	}
	lines = append(lines, fmt.Sprintf("By chance alone about %.2g of them would differ. %d of the differences remain significant across all figures (Holm).", c.ByChance, sure))
	if len(c.Same) == 0 {
		lines = append(lines, "It is unknown how much two identical runs differ: give more runs of A with --same.")
	}
	return lines
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
