// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/drayage/dray/internal/result/record"
	"github.com/drayage/dray/internal/result/report/document"
	"github.com/drayage/dray/internal/result/verdict"
	"github.com/drayage/dray/internal/spec/matrix"
)

const notMeasured = "not measured"

// three prints a number with three significant digits, and no exponent.
func three(v float64) string {
	if v == 0 || math.IsNaN(v) || math.IsInf(v, 0) {
		return "0"
	}
	digits := 2 - int(math.Floor(math.Log10(math.Abs(v))))
	if digits < 0 {
		step := math.Pow(10, float64(-digits))
		return strconv.FormatFloat(math.Round(v/step)*step, 'f', 0, 64)
	}
	return strconv.FormatFloat(v, 'f', min(digits, 6), 64)
}

// benchUnit is the unit for a value: k, M or G of it.
func benchUnit(v float64) (div float64, prefix string) {
	switch {
	case v >= 1e9:
		return 1e9, "G"
	case v >= 1e6:
		return 1e6, "M"
	case v >= 1e3:
		return 1e3, "k"
	}
	return 1, ""
}

// ppsText prints packets per second as the field does.
func ppsText(v float64) string {
	div, prefix := benchUnit(v)
	return three(v/div) + " " + prefix + "pps"
}

// bpsText prints bits per second.
func bpsText(v float64) string {
	div, prefix := benchUnit(v)
	return three(v/div) + " " + prefix + "b/s"
}

// intervalText is printed after a mean: its interval in the same unit.
func intervalText(v *BenchValue) string {
	if v == nil {
		return ""
	}
	if v.Low == nil {
		return "one round"
	}
	div, _ := benchUnit(v.Mean)
	return three(*v.Low/div) + "…" + three(*v.High/div)
}

// widest is the ratio of an interval's ends above which it is meaningless.
const widest = 1000

func ratioText(r *BenchRatio) string {
	switch {
	case r == nil:
		return document.None
	case r.Low == nil:
		return "× " + three(r.Ratio)
	case r.Indistinct && *r.High > widest**r.Low:
		return "indistinguishable (too few rounds)"
	case r.Indistinct:
		return fmt.Sprintf("indistinguishable (%s…%s)", three(*r.Low), three(*r.High))
	}
	return fmt.Sprintf("× %s (%s…%s)", three(r.Ratio), three(*r.Low), three(*r.High))
}

func valueOr(v *BenchValue, format func(float64) string) string {
	if v == nil {
		return document.None
	}
	return format(v.Mean)
}

func percentText(v float64) string { return fmt.Sprintf("%.0f %%", 100*v) }

func memoryText(v float64) string { return three(v/(1<<20)) + " MiB" }

// atPercentile is the latency at a percentile.
func (l *BenchLine) atPercentile(p float64) string {
	for _, q := range l.Latency {
		if q.Percentile == p {
			return quantileText(q.Quantile)
		}
	}
	return document.None
}

func (l *BenchLine) longest() string {
	if l.Samples == 0 {
		return document.None
	}
	return verdict.FormatDuration(float64(l.Longest))
}

// lossPercent is the share of packets lost by the link and by a slow receiver.
func (l *BenchLine) lossPercent() string {
	if l.Lost == nil || l.Lost.Sent == 0 {
		return document.None
	}
	percent := 100 * float64(l.Lost.Lost) / float64(l.Lost.Sent)
	if percent > 0 && percent < 0.001 {
		return "< 0.001 %"
	}
	return three(percent) + " %"
}

// state says why a line has no figures; empty: it has.
func (l *BenchLine) state() string {
	text := ""
	switch {
	case l.Skipped != "":
		text = "not run here: " + l.Skipped
		if l.Fix != "" {
			text += "; " + l.Fix
		}
	case l.Rate != nil:
	case len(l.Failed) > 0:
		text = "failed: " + l.Error
	case len(l.Trials) == 0:
		text = "no trial yet"
	}
	return text
}

// marksOf are the marks of a line, including problems with its trials.
func (l *BenchLine) marksOf() []string {
	all := append([]string{}, l.Marks...)
	if n := len(l.Failed); n > 0 && l.Rate != nil {
		all = append(all, fmt.Sprintf("%d of %d trials failed", n, len(l.Trials)))
	}
	if n := len(l.Outliers); n > 0 {
		all = append(all, countOf(n, "outlier"))
	}
	return all
}

// sizeWords is a size in the reader's terms.
func sizeWords(size string) string {
	switch size {
	case matrix.IMIX.String():
		return "IMIX"
	case document.None:
		return size
	}
	return size + " B"
}

// headline summarises a bench.
func (d *BenchData) headline() string {
	measured, skipped, failed := 0, 0, 0
	for i := range d.Lines {
		if d.Lines[i].state() == "" {
			measured++
		}
	}
	for _, l := range d.without() {
		if l.Skipped != "" {
			skipped++
		} else {
			failed++
		}
	}
	parts := []string{countOf(measured, "row") + " measured"}
	if failed > 0 {
		parts = append(parts, fmt.Sprintf("%d without a result", failed))
	}
	if skipped > 0 {
		parts = append(parts, fmt.Sprintf("%d that this host cannot run", skipped))
	}
	return strings.Join(parts, ", ")
}

// noLimit warns about rows without a physical limit.
func noLimit(reason string) string {
	return "Some rows lack the current physical limit: " + reason + "."
}

// limitsOf is the range of the physical limit over some trials.
func limitsOf(trials []record.Trial) string {
	return rangesOf(trials, "a bare ring passed %s to %s at 64 B, a cache-line round trip took %s to %s ns", three,
		func(b *record.Bench) (float64, float64, bool) {
			if b.Limit == nil {
				return 0, 0, false
			}
			return b.Limit.Ring, b.Limit.Line, true
		})
}

// ceilingsOf are the generator's rates without a port.
func ceilingsOf(trials []record.Trial) string {
	return rangesOf(trials, "%s to %s sending and %s to %s receiving, without a port", ppsText,
		func(b *record.Bench) (float64, float64, bool) {
			if b.Ceiling == nil {
				return 0, 0, false
			}
			return b.Ceiling.Send, b.Ceiling.Receive, true
		})
}

// rangesOf says between what values a rate and another figure lay.
func rangesOf(trials []record.Trial, format string, other func(float64) string, of func(*record.Bench) (rate, figure float64, ok bool)) string {
	var rates, figures []float64
	for _, t := range trials {
		if t.Bench == nil {
			continue
		}
		if rate, figure, ok := of(t.Bench); ok {
			rates, figures = append(rates, rate), append(figures, figure)
		}
	}
	if len(rates) == 0 {
		return notMeasured
	}
	return fmt.Sprintf(format, ppsText(slices.Min(rates)), ppsText(slices.Max(rates)), other(slices.Min(figures)), other(slices.Max(figures)))
}
