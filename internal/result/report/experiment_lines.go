// SPDX-License-Identifier: Apache-2.0

package report

import (
	"slices"
	"time"

	"github.com/drayage/dray/internal/result/record"
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
	Differs    string        `json:"differs,omitempty"` // how the measurement differs from the source's
	NotRun     string        `json:"not_run,omitempty"` // why there is no figure
	Failed     string        `json:"failed,omitempty"`  // why some, but not all, of its trials failed
	Sent       *SentRate     `json:"sent,omitempty"`    // set if it missed the load
	Records    []string      `json:"records"`           // ids of the trials
}

// markDiffers marks a row whose measurement is not what the source did.
const markDiffers = "differs"

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
		Marks: []string{}, Records: []string{}, Differs: r.Differs, NotRun: r.NotRun,
	}
	if l.NotRun != "" {
		return l
	}
	if r.Differs != "" {
		l.Marks = append(l.Marks, markDiffers)
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
// was missed, times say nothing about the requested load. What becomes of sessions does
// not depend on it.
func valueOf(f experiment.Figure, t record.Trial) (v float64, failed string) {
	v, ok := t.Experiment.Values[string(f)]
	switch anyLoad := f == "packet_rate" || f == "sent_rate" || f == "throughput" || f.Unit() == "sessions"; {
	case t.Error != "":
		return 0, t.Error
	case !anyLoad && slices.Contains(t.Marks, record.MarkLoadMissed):
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
