// SPDX-License-Identifier: Apache-2.0

package report

import (
	"bytes"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/drayage/dray/internal/result/record"
	"github.com/drayage/dray/internal/result/verdict"
)

// Text writes the terminal report: verdicts first, then what was measured on
// each link. A width of 0 means no limit.
func (d *Data) Text(w io.Writer, width int) error {
	var b bytes.Buffer
	fmt.Fprintf(&b, "%s: %s\n\n", plain(d.Run.Chain), Headline(d.Verdicts))
	if text := d.interruption(); text != "" {
		fmt.Fprintf(&b, "%s\n\n", plain(text))
	}
	if err := d.writeVerdicts(&b, width); err != nil {
		return err
	}
	if err := d.writeComparison(&b, width); err != nil {
		return err
	}
	if err := d.writeMeasurements(&b, width); err != nil {
		return err
	}
	fmt.Fprintf(&b, "Report: %s\n", filepath.Join(d.Dir, PageFile))
	_, err := w.Write(b.Bytes())
	return err
}

// Headline sums the verdicts up in one line.
func Headline(vs []verdict.Verdict) string {
	n := map[verdict.Word]int{}
	for _, v := range vs {
		n[v.Verdict]++
	}
	total := len(vs)
	switch {
	case total == 0:
		return "nothing was required"
	case n[verdict.Met] == total:
		return fmt.Sprintf("%s met", all(total))
	}
	var parts []string
	for _, word := range []verdict.Word{verdict.Missed, verdict.NotMeasurable, verdict.Met} {
		if n[word] > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n[word], word))
		}
	}
	return fmt.Sprintf("%s, of %s", strings.Join(parts, ", "), countOf(total, "requirement"))
}

func all(n int) string {
	if n == 1 {
		return "the one requirement"
	}
	return fmt.Sprintf("all %d requirements", n)
}

func countOf(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

func (d *Data) writeVerdicts(w *bytes.Buffer, width int) error {
	if len(d.Verdicts) == 0 {
		return nil
	}
	t := table{head: []string{"LINK", "REQUIREMENT", "REQUIRED", "MEASURED", "95 % BOUND", "VERDICT", "MARKS"}}
	for _, v := range d.Verdicts {
		t.add(plain(v.Link), v.Requirement, v.Required.Text, v.Measured.Text, v.Bound.Text, string(v.Verdict), marks(v.Marks))
	}
	if err := t.write(w, width); err != nil {
		return err
	}
	w.WriteString("\n")
	writeBases(w, d.Verdicts, width)
	for _, v := range d.Verdicts {
		if v.Verdict == verdict.Met {
			continue
		}
		text := fmt.Sprintf("%s of %s (%s) %s: %s.", v.Requirement, plain(v.Link), plain(v.Direction), was(v.Verdict), plain(v.Reason))
		if v.Needs != "" {
			text += " It takes " + plain(v.Needs) + "."
		}
		if width > 0 {
			text = strings.Join(wrap(text, max(width, 20)), "\n")
		}
		w.WriteString(text + "\n\n")
	}
	return nil
}

// writeBases says of what traffic the verdicts are.
func writeBases(w *bytes.Buffer, vs []verdict.Verdict, width int) {
	var bases []string
	names := map[string][]string{}
	for _, v := range vs {
		if v.Basis == "" {
			continue
		}
		if names[v.Basis] == nil {
			bases = append(bases, v.Basis)
		}
		names[v.Basis] = append(names[v.Basis], plain(v.Link)+" "+v.Requirement)
	}
	for _, basis := range bases {
		text := fmt.Sprintf("Measured with %s: %s.", basis, strings.Join(names[basis], ", "))
		if width > 0 {
			text = strings.Join(wrap(text, max(width, 20)), "\n")
		}
		w.WriteString(text + "\n")
	}
	if len(bases) > 0 {
		w.WriteString("\n")
	}
}

func was(w verdict.Word) string {
	if w == verdict.NotMeasurable {
		return "is not measurable"
	}
	return "is " + string(w)
}

func marks(m []string) string {
	if len(m) == 0 {
		return "–"
	}
	return plain(strings.Join(m, ", "))
}

func (d *Data) writeMeasurements(w *bytes.Buffer, width int) error {
	ms := d.Measurements()
	for len(ms) > 0 {
		link := ms[0].Link
		n := 1
		for n < len(ms) && ms[n].Link == link {
			n++
		}
		if err := writeLink(w, width, ms[:n]); err != nil {
			return err
		}
		ms = ms[n:]
	}
	return nil
}

func writeLink(w *bytes.Buffer, width int, ms []Measurement) error {
	fmt.Fprintf(w, "Link %s over %s\n\n", plain(ms[0].Link), plain(ms[0].Transport))
	rates := table{head: []string{"QUANTITY", "DIRECTION", "LOAD", "MEAN, 95 % INTERVAL", "LOST", "TRIALS", "MARKS"}}
	delays := table{head: []string{"DELAY", "DIRECTION", "LOAD", "P50", "P90", "P99", "P99.9", "P99.99", "MAX", "N", "LOST", "MARKS"}}
	for _, m := range ms {
		way := plain(m.From + " → " + m.To)
		if m.Delay != nil {
			row := []string{plain(delayText(m)), way, loadText(m)}
			for _, q := range m.Delay.Quantiles {
				row = append(row, quantileText(q))
			}
			delays.add(append(row, longest(m.Delay), fmt.Sprint(m.Delay.Samples), fmt.Sprint(m.Delay.Lost), marks(m.Marks))...)
		}
		if m.Rate == nil && m.Delay != nil {
			continue
		}
		rates.add(plain(quantityName(m)), way, loadText(m), valueText(m), lossText(m), trialsText(m), marks(m.Marks))
	}
	for _, t := range []table{rates, delays} {
		if len(t.rows) == 0 {
			continue
		}
		if err := t.write(w, width); err != nil {
			return err
		}
		w.WriteString("\n")
	}
	if crossChecked(ms) {
		w.WriteString(crossCheckNote + "\n\n")
	}
	return nil
}

func quantityText(q record.Quantity) string { return strings.ReplaceAll(string(q), "_", " ") }

// quantityName says what a row shows, and by what where that decides nothing.
func quantityName(m Measurement) string { return quantityText(m.Quantity) + by(m) }

// delayText says how a delay was measured, and by what where that decides nothing.
func delayText(m Measurement) string { return m.Delay.Way + by(m) }

func by(m Measurement) string {
	if !m.CrossCheck {
		return ""
	}
	return " by " + m.Instrument
}

// crossCheckNote explains rows that name an instrument.
const crossCheckNote = "Rows that name an instrument are cross-checks: they decide nothing."

func crossChecked(ms []Measurement) bool {
	return slices.ContainsFunc(ms, func(m Measurement) bool { return m.CrossCheck })
}

func loadText(m Measurement) string {
	if m.Load == 0 {
		return "none"
	}
	return verdict.FormatBitrate(float64(m.Load))
}

func longest(d *Delay) string {
	if d.Samples == d.Lost {
		return "–"
	}
	return verdict.FormatDuration(float64(d.Max))
}

func quantileText(q Quantile) string {
	if q.Refused != "" {
		return "–"
	}
	return verdict.FormatDuration(float64(q.Value))
}

// rateText prints a rate with its unit.
func rateText(unit string, v float64) string {
	switch unit {
	case "bit/s":
		return verdict.FormatBitrate(v)
	case "packets/s":
		return verdict.FormatPacketRate(v)
	}
	return fmt.Sprintf("%.0f/s", v)
}

func valueText(m Measurement) string {
	switch {
	case m.MTU != nil:
		return fmt.Sprintf("%d B passed in %d of %s", m.MTU.Bytes, m.MTU.Passed, countOf(m.MTU.Rounds, "round"))
	case m.Rate == nil:
		return "–"
	case m.Rate.Low == nil:
		return rateText(m.Rate.Unit, m.Rate.Mean) + ", one trial"
	}
	u := m.Rate.Unit
	return fmt.Sprintf("%s (%s … %s)", rateText(u, m.Rate.Mean), rateText(u, *m.Rate.Low), rateText(u, *m.Rate.High))
}

func lossText(m Measurement) string {
	if m.Loss == nil || m.Loss.Sent == 0 {
		return "–"
	}
	text := fmt.Sprintf("%d of %d", m.Loss.Lost-min(m.Loss.Lost, m.Loss.ReceiverDrops), m.Loss.Sent)
	if m.Loss.ReceiverDrops > 0 {
		text += fmt.Sprintf(" (and %d by a slow receiver)", m.Loss.ReceiverDrops)
	}
	return text
}

func trialsText(m Measurement) string {
	s := fmt.Sprint(len(m.Trials))
	if n := len(m.Failed); n > 0 {
		s += fmt.Sprintf(", %d failed", n)
	}
	if n := len(m.Outliers); n > 0 {
		s += fmt.Sprintf(", %s", countOf(n, "outlier"))
	}
	return s
}

// elapsed prints a span of wall-clock time.
func elapsed(d time.Duration) string {
	switch {
	case d >= time.Minute:
		return fmt.Sprintf("%d min %d s", int(d.Minutes()), int(d.Seconds())%60)
	case d >= time.Second:
		return fmt.Sprintf("%.1f s", d.Seconds())
	}
	return fmt.Sprintf("%d ms", d.Milliseconds())
}
