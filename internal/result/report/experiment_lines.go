// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"slices"
	"time"

	"github.com/drayage/dray/internal/result/record"
	"github.com/drayage/dray/internal/result/stats"
	"github.com/drayage/dray/internal/spec/experiment"
)

// ExperimentLine is one row of an experiment: published next to measured.
type ExperimentLine struct {
	Experiment string        `json:"experiment"`
	Row        string        `json:"row"`
	Title      string        `json:"title"`
	Published  string        `json:"published,omitempty"`
	Unit       string        `json:"unit,omitempty"`
	N          int           `json:"n"`
	Measured   *float64      `json:"measured,omitempty"` // the mean; of a maximum, the largest seen
	Low        *float64      `json:"low,omitempty"`      // 95 % interval of the mean; nil: one trial, or a maximum
	High       *float64      `json:"high,omitempty"`
	Most       bool          `json:"most,omitempty"`  // Measured is the largest seen, in N trials
	Holds      *bool         `json:"holds,omitempty"` // for a pass/fail figure: whether it held in every trial
	Trial      time.Duration `json:"trial"`           // ns
	Ratio      *float64      `json:"ratio,omitempty"` // Measured divided by published; nil: not comparable, or emulated
	Marks      []string      `json:"marks"`
	NotRun     string        `json:"not_run,omitempty"` // why there is no figure
	Failed     string        `json:"failed,omitempty"`  // why some, but not all, of its trials failed
	Sent       *SentRate     `json:"sent,omitempty"`    // set if it missed the load
	Records    []string      `json:"records"`           // ids of the trials
}

// Words of claims.
const (
	ClaimHeld      = "held"
	ClaimNotHeld   = "not held"
	ClaimUndecided = "undecided"
)

// ClaimLine is one claim, decided or undecided.
type ClaimLine struct {
	Experiment string `json:"experiment"`
	Text       string `json:"text"`
	Word       string `json:"word"`
	Why        string `json:"why"`
	// Marks are the marks of the two rows.
	Marks []string `json:"marks"`
}

// Lines are all rows of an experiment, including those not run.
func (d *ExperimentsData) Lines(e *experiment.Experiment) []ExperimentLine {
	lines := make([]ExperimentLine, len(e.Rows))
	for i, r := range e.Rows {
		lines[i] = d.line(e, r)
	}
	return lines
}

func (d *ExperimentsData) line(e *experiment.Experiment, r experiment.Row) ExperimentLine {
	l := ExperimentLine{
		Experiment: e.Name, Row: r.Name, Title: r.Title, Published: r.Published, Unit: r.Figure.Unit(), Most: r.Figure.Most(), Trial: d.Run.Trial,
		Marks: []string{}, Records: []string{}, NotRun: r.NotRun,
	}
	if l.NotRun != "" {
		return l
	}
	var values []float64
	var counted []record.Trial
	for _, t := range d.of(r.Cell) {
		l.Records = append(l.Records, t.ID)
		v, failed := valueOf(r.Figure, t)
		if failed != "" {
			l.Failed = failed
			continue
		}
		values, counted = append(values, v), append(counted, t)
		for _, m := range t.Marks {
			if !slices.Contains(l.Marks, m) {
				l.Marks = append(l.Marks, m)
			}
		}
	}
	slices.Sort(l.Marks)
	l.N, l.Sent = len(values), sentRate(counted)
	if l.N == 0 {
		l.NotRun, l.Failed = d.reason(r.Cell, l.Failed), ""
		return l
	}
	if r.Figure.PassFail() {
		least := slices.Min(values)
		holds := least == 1
		l.Measured, l.Holds = &least, &holds
		return l
	}
	l.sum(values, r.Value)
	return l
}

// valueOf is a trial's value of a figure, or why it has none that counts. If the load
// was missed, times say nothing about the requested load.
func valueOf(f experiment.Figure, t record.Trial) (v float64, failed string) {
	v, ok := t.Experiment.Values[string(f)]
	switch rate := f == "packet_rate" || f == "sent_rate" || f == "throughput"; {
	case t.Error != "":
		return 0, t.Error
	case !rate && slices.Contains(t.Marks, record.MarkLoadMissed):
		return 0, rejected(t)
	case !ok && t.Experiment.Why[string(f)] != "":
		return 0, t.Experiment.Why[string(f)]
	case !ok:
		return 0, "the trial gives no such figure"
	}
	return v, ""
}

// sum computes the line's figures from its trials' values.
func (l *ExperimentLine) sum(values []float64, published float64) {
	mean, low, high := meanOf(values)
	if l.Most {
		mean, low, high = slices.Max(values), nil, nil
	}
	l.Low, l.High = low, high
	l.Measured = &mean
	if published > 0 && !slices.Contains(l.Marks, record.MarkEmulated) {
		ratio := mean / published
		l.Ratio = &ratio
	}
}

// reason is why a cell has no figure.
func (d *ExperimentsData) reason(c experiment.Cell, failed string) string {
	switch {
	case d.Run.Skipped[c.String()] != "":
		return d.Run.Skipped[c.String()]
	case failed != "":
		return failed
	}
	return "the run ended before it"
}

// of are the trials that count for a cell.
func (d *ExperimentsData) of(c experiment.Cell) []record.Trial {
	return d.named(c.String())
}

// named are the trials with a cell's name in their records.
func (d *ExperimentsData) named(cell string) (trials []record.Trial) {
	for _, t := range d.Trials {
		if t.Experiment != nil && t.Experiment.Cell == cell && !t.Warmup {
			trials = append(trials, t)
		}
	}
	return trials
}

// native are the trials on real CPUs: the limits of emulated CPUs do not apply to them.
func (d *ExperimentsData) native() []record.Trial {
	return slices.DeleteFunc(slices.Clone(d.Trials), func(t record.Trial) bool { return slices.Contains(t.Marks, record.MarkEmulated) })
}

// claimPairs is the minimum number of pairs for a claim.
const claimPairs = 5

// Claims decides an experiment's claims, each at 95 % confidence from the ratio of
// trials paired by round.
func (d *ExperimentsData) Claims(e *experiment.Experiment) []ClaimLine {
	var lines []ClaimLine
	for _, c := range e.Claims {
		l := ClaimLine{Experiment: e.Name, Text: c.Text, Marks: []string{}}
		first, second := c.Rows()
		for _, r := range e.Rows {
			if r.Name == first || r.Name == second {
				l.Marks = append(l.Marks, d.line(e, r).Marks...)
			}
		}
		slices.Sort(l.Marks)
		l.Marks = slices.Compact(l.Marks)
		l.Word, l.Why = d.decide(e, c)
		lines = append(lines, l)
	}
	return lines
}

func (d *ExperimentsData) decide(e *experiment.Experiment, c experiment.Claim) (word, why string) {
	rows := map[string]experiment.Row{}
	for _, r := range e.Rows {
		rows[r.Name] = r
	}
	first, second := c.Rows()
	a, b := rows[first], rows[second]
	for _, r := range []experiment.Row{a, b} {
		if l := d.line(e, r); l.Measured == nil {
			return ClaimUndecided, fmt.Sprintf("%s was not run here", r.Title)
		}
	}
	pairs, emulated := sameRound(a.Figure, d.of(a.Cell), b.Figure, d.of(b.Cell))
	if d.elsewhere(a) != d.elsewhere(b) {
		return ClaimUndecided, "one of the two was measured in a lab guest, on another kernel"
	}
	if d.Run.Lab[a.Cell.String()] != d.Run.Lab[b.Cell.String()] {
		return ClaimUndecided, "they were measured in two lab guests, one after the other: no rounds pair them"
	}
	if emulated {
		return ClaimUndecided, "an emulated figure is never compared with another"
	}
	if len(pairs) < claimPairs {
		return ClaimUndecided, fmt.Sprintf("%d pairs of trials; %d are needed", len(pairs), claimPairs)
	}
	ratio, err := stats.Ratio(pairs, d.Run.Seed)
	if err != nil {
		return ClaimUndecided, err.Error()
	}
	why = fmt.Sprintf("ratio %s, 95 %% interval %s…%s, %d pairs", three(ratio.Ratio), three(ratio.CI.Low), three(ratio.CI.High), ratio.N)
	if c.Within > 0 {
		return alike(ratio, float64(c.Within), why)
	}
	switch {
	case ratio.CI.High < 1:
		return ClaimHeld, why
	case ratio.CI.Low > 1:
		return ClaimNotHeld, why
	}
	return ClaimUndecided, why + ": indistinguishable"
}

// alike decides whether two figures are the same: neither exceeds the other by more
// than within. They are if the whole interval of their ratio is within that, and are
// not if it is outside.
func alike(r stats.RatioEstimate, within float64, why string) (word, decided string) {
	high := 1 + within
	low := 1 / high
	why += fmt.Sprintf("; the same: %s…%s", three(low), three(high))
	switch {
	case r.CI.Low >= low && r.CI.High <= high:
		return ClaimHeld, why
	case r.CI.High < low || r.CI.Low > high:
		return ClaimNotHeld, why
	}
	return ClaimUndecided, why
}

// elsewhere reports whether a lab guest measured a row.
func (d *ExperimentsData) elsewhere(r experiment.Row) bool {
	return slices.ContainsFunc(d.of(r.Cell), func(t record.Trial) bool { return slices.Contains(t.Marks, record.MarkLab) })
}

// sameRound are the values of two figures in the rounds that have both.
func sameRound(a experiment.Figure, as []record.Trial, b experiment.Figure, bs []record.Trial) (pairs []stats.Pair, emulated bool) {
	other := map[int]float64{}
	for _, t := range bs {
		if v, failed := valueOf(b, t); failed == "" {
			other[t.Round] = v
			emulated = emulated || slices.Contains(t.Marks, record.MarkEmulated)
		}
	}
	for _, t := range as {
		v, failed := valueOf(a, t)
		if w, both := other[t.Round]; failed == "" && both {
			pairs = append(pairs, stats.Pair{A: v, B: w})
			emulated = emulated || slices.Contains(t.Marks, record.MarkEmulated)
		}
	}
	return pairs, emulated
}
