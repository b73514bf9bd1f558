// SPDX-License-Identifier: Apache-2.0

// Package compare compares two runs, figure by figure, from their records alone: what
// differs, the bounds of each difference, and what is indistinguishable.
package compare

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/drayage/dray/internal/result/record"
	"github.com/drayage/dray/internal/result/report"
)

// maxRecords limits how much of one run is read, bytes.
const maxRecords = 512 << 20

// Run is one side of a comparison.
type Run struct {
	Path     string    `json:"path"` // as given
	ID       string    `json:"id"`
	Chain    string    `json:"chain"`
	Started  time.Time `json:"started"`  // of its first trial
	Warnings []string  `json:"warnings"` // of reading

	trials []record.Trial
	env    record.Environment // of its first trial
}

// Load reads a run: a directory that holds records, or a file of them.
func Load(path string) (*Run, error) {
	file := path
	info, err := os.Stat(path)
	if err == nil && info.IsDir() {
		file = filepath.Join(path, report.RecordsFile)
		info, err = os.Stat(file)
	}
	switch {
	case err != nil:
		return nil, fmt.Errorf("read run: %w; name a directory that `dray run` or `dray bench` made, or a records file", err)
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("read run: %s is not a regular file", file)
	case info.Size() > maxRecords:
		return nil, fmt.Errorf("read run: %s is larger than %d MiB", file, maxRecords>>20)
	}
	trials, warnings, err := record.ReadFile(file)
	if err != nil {
		return nil, err
	}
	r := &Run{Path: path, Warnings: append([]string{}, warnings...), trials: trials}
	return r, r.check(file)
}

// check takes the run's own data from its records.
func (r *Run) check(file string) error {
	if len(r.trials) == 0 {
		return fmt.Errorf("%s holds no records", file)
	}
	first := r.trials[0]
	r.ID, r.Chain, r.Started, r.env = first.Run, first.Chain, first.Start, first.Env
	for i, t := range r.trials {
		if t.Run != r.ID {
			return fmt.Errorf("%s: record %d belongs to run %q, but the first to %q: a file holds one run", file, i+1, t.Run, r.ID)
		}
		if t.Start.Before(r.Started) {
			r.Started = t.Start
		}
	}
	// What functions got of their CPUs is judged, and not compared.
	r.trials = slices.DeleteFunc(r.trials, func(t record.Trial) bool { return t.Function != "" })
	// The run's machine is the host, not a lab guest that measured part of it.
	if i := slices.IndexFunc(r.trials, func(t record.Trial) bool { return !slices.Contains(t.Marks, record.MarkLab) }); i >= 0 {
		r.env = r.trials[i].Env
	}
	return nil
}

// Cell is what was measured, regardless of the machine: equal cells of two runs are
// compared.
type Cell struct {
	Config     string          `json:"config,omitempty"` // of a bench: transport/face/runtime/size/vnf; of an experiment: the cell
	Link       string          `json:"link"`
	From       string          `json:"from"`
	To         string          `json:"to"`
	Quantity   record.Quantity `json:"quantity"`
	Load       string          `json:"load"` // offered, bit/s; of a bench, in the matrix's words
	Instrument string          `json:"instrument"`
	// Frame is the bytes of its frames with FCS; 0: unknown, or part of Config.
	Frame int `json:"frame,omitempty"`
}

// cellOf is the cell of a trial. It includes the transport in a bench, but not in the
// run of a chain, so that two transports of a link can be compared.
func cellOf(t record.Trial) Cell {
	c := Cell{Link: t.Link, From: t.From, To: t.To, Quantity: t.Quantity, Instrument: t.Instrument.Name, Load: loadOf(t)}
	if t.Bench != nil {
		c.Config, c.Load = t.Bench.Config.String(), t.Bench.Load
	}
	if t.Experiment != nil {
		c.Config = t.Experiment.Cell
	}
	if c.Config == "" && t.Delivery != nil {
		c.Frame = t.Delivery.FrameBytes
	}
	return c
}

// adopt names the cells without any result like the other side's, if that has one cell
// of the same kind: a failed trial does not state its frames.
func adopt(order []Cell, own, other map[Cell]*side) {
	for i, c := range order {
		if len(own[c].trials) > 0 || other[c] != nil {
			continue
		}
		var like []Cell
		for o := range other {
			if own[o] == nil && o.like(c) {
				like = append(like, o)
			}
		}
		if len(like) == 1 {
			order[i] = like[0]
			own[like[0]] = own[c]
			delete(own, c)
		}
	}
}

// like reports whether the cells differ in their frames at most.
func (c Cell) like(o Cell) bool {
	c.Frame = o.Frame
	return c == o
}

func loadOf(t record.Trial) string {
	switch {
	case t.Load != nil:
		return fmt.Sprint(t.Load.Offered)
	case t.Delivery != nil && t.Quantity != record.QProbe && !t.Passive:
		return fmt.Sprint(t.Delivery.OfferedBits)
	}
	return "0"
}

// side is one run's data for a cell.
type side struct {
	transports []string
	marks      []string
	trials     []record.Trial // with a result
	failed     int
}

// counts reports whether a trial is evidence: no warm-up, no cross-check, and no step
// of a search.
func counts(t record.Trial) bool {
	return !t.Warmup && !t.CrossCheck && (t.Bench == nil || t.Bench.Step == 0)
}

// cells groups the run's trials by what they measured, in order of appearance.
func (r *Run) cells() ([]Cell, map[Cell]*side) {
	var order []Cell
	sides := map[Cell]*side{}
	repeated := r.repeated()
	for _, t := range r.trials {
		if !counts(t) {
			continue
		}
		c := cellOf(t)
		if like, ok := repeated[series(t)]; ok && t.Error != "" {
			c = like
		}
		if sides[c] == nil {
			sides[c] = &side{}
			order = append(order, c)
		}
		sides[c].take(t)
	}
	return order, sides
}

// arrange orders cells as in a report: links and configurations by first appearance,
// then by direction, quantity and load.
func arrange(cells []Cell) {
	rank := map[string]int{}
	for _, c := range cells {
		if _, known := rank[c.group()]; !known {
			rank[c.group()] = len(rank)
		}
	}
	slices.SortStableFunc(cells, func(a, b Cell) int {
		return cmp.Or(cmp.Compare(rank[a.group()], rank[b.group()]), cmp.Compare(a.From, b.From), cmp.Compare(a.To, b.To),
			cmp.Compare(a.Quantity, b.Quantity), cmp.Compare(len(a.Load), len(b.Load)), cmp.Compare(a.Load, b.Load))
	})
}

// repeated finds the cell of each series of trials. A failed trial may not state its
// load or instrument; its series does.
func (r *Run) repeated() map[string]Cell {
	cells := map[string]Cell{}
	for _, t := range r.trials {
		if s := series(t); s != "" && t.Error == "" && counts(t) {
			cells[s] = cellOf(t)
		}
	}
	return cells
}

// series is the common prefix of the ids of a cell's trials: "f1u-stream-a-b" for
// "f1u-stream-a-b-r3".
func series(t record.Trial) string { return t.ID[:max(0, strings.LastIndexByte(t.ID, '-'))] }

func (s *side) take(t record.Trial) {
	if t.Transport != "" && !slices.Contains(s.transports, t.Transport) {
		s.transports = append(s.transports, t.Transport)
	}
	if t.Error != "" {
		s.failed++
		return
	}
	s.trials = append(s.trials, t)
	for _, m := range marksOf(t) {
		if !slices.Contains(s.marks, m) {
			s.marks = append(s.marks, m)
		}
	}
}

// markAtLeast marks a searched rate without a regular result: the figure is a lower
// bound.
const markAtLeast = "at least"

func marksOf(t record.Trial) []string {
	if t.Bench != nil && t.Bench.Search != nil && t.Bench.Search.Irregular != "" {
		return append([]string{markAtLeast}, t.Marks...)
	}
	return t.Marks
}

// group identifies the table of a comparison.
func (c Cell) group() string { return c.Link + "\x00" + c.Config }
