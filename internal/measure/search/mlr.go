// SPDX-License-Identifier: Apache-2.0

package search

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"
)

// Config is the Controller Input of an MLRsearch.
type Config struct {
	Goals []Goal `json:"goals"`
	// Min and Max bound the loads, packets/s. Max should be the sender's rate with
	// nothing behind it.
	Min uint64 `json:"min"`
	Max uint64 `json:"max"`
	// Retries is how often a rejected trial is repeated; 0: DefaultRetries.
	Retries int `json:"retries,omitempty"`
	// MaxTrials and Budget (of trial time) end a search that takes too long; 0:
	// DefaultMaxTrials, and no budget.
	MaxTrials int           `json:"max_trials,omitempty"`
	Budget    time.Duration `json:"budget,omitempty"`
	// OnTrial is called as each trial ends; nil: not.
	OnTrial func(Trial) `json:"-"`
}

// Defaults of a Config.
const (
	DefaultRetries   = 2
	DefaultMaxTrials = 2000
)

// Reasons for an irregular result.
const (
	ReasonMax      = "even the highest allowed load passes"
	ReasonMin      = "even the lowest allowed load fails"
	ReasonSender   = "the sender cannot offer more"
	ReasonResolved = "the bounds are one packet per second apart"
	ReasonBudget   = "the search used up its time budget"
)

// errBudget ends a search that has taken too long; its results are kept.
var errBudget = errors.New(ReasonBudget)

// lengthening is the factor by which trials lengthen from phase to phase.
const lengthening = 4

// controller is a search in progress.
type controller struct {
	Config
	measurer Measurer
	loads    *ledger
	all      []Trial
	spent    time.Duration
	// ceiling is the lowest load that the sender could not offer; 0: unknown.
	ceiling uint64
}

// target is a goal, or a coarser version of it.
type target struct {
	Goal
	coarser *target // nil: none
}

// MLR runs an MLRsearch. Rejected trials are repeated; a load that the sender
// never reaches bounds the search and makes no upper bound. If an error ends the
// search, the result holds what was found.
func MLR(ctx context.Context, m Measurer, c Config) (Result, error) {
	if c.Retries == 0 {
		c.Retries = DefaultRetries
	}
	if c.MaxTrials == 0 {
		c.MaxTrials = DefaultMaxTrials
	}
	if err := c.check(); err != nil {
		return Result{}, err
	}
	s := &controller{Config: c, measurer: m, loads: newLedger()}
	err := s.run(ctx)
	r := s.result(err)
	if errors.Is(err, errBudget) {
		err = nil
	}
	return r, err
}

func (c Config) check() error {
	if len(c.Goals) == 0 {
		return errors.New("search: no goal")
	}
	if c.Min < 1 || c.Max <= c.Min {
		return fmt.Errorf("search: loads from %d to %d packets/s: need 1 ≤ min < max", c.Min, c.Max)
	}
	if c.Retries < 0 || c.MaxTrials < 0 || c.Budget < 0 {
		return errors.New("search: retries, trials and budget cannot be negative")
	}
	for _, g := range c.Goals {
		if err := g.check(); err != nil {
			return fmt.Errorf("search: %w", err)
		}
		if packets := float64(c.Min) * g.first().Seconds(); packets < 1 {
			return fmt.Errorf("search: goal %s: %d packets/s for %v is less than one packet; raise the lowest load or the trial duration", g.Name, c.Min, g.first())
		}
	}
	return nil
}

func (g Goal) first() time.Duration {
	if g.Initial > 0 {
		return g.Initial
	}
	return g.Trial
}

// targets are the versions of a goal from the coarsest to itself. From one to the
// next, trials are `lengthening` times longer, and the width is half.
func (g Goal) targets() []*target {
	var durations []time.Duration
	for d := g.first(); d < g.Trial; d *= lengthening {
		durations = append(durations, d)
	}
	var out []*target
	for i, d := range durations {
		t := &target{Goal: g}
		t.Trial, t.Sum = d, d
		t.Width = math.Min(0.5, g.Width*math.Pow(2, float64(len(durations)-i)))
		out = append(out, t)
	}
	out = append(out, &target{Goal: g})
	for i := 1; i < len(out); i++ {
		out[i].coarser = out[i-1]
	}
	return out
}

// run takes all goals through their phases, and repeats until none has anything
// left to measure: trials for one goal can invalidate another's bound.
func (s *controller) run(ctx context.Context) error {
	targets := make([][]*target, len(s.Goals))
	most := 0
	for i, g := range s.Goals {
		targets[i] = g.targets()
		most = max(most, len(targets[i]))
	}
	for phase := range most {
		for _, ts := range targets {
			if phase < len(ts)-1 {
				if _, err := s.reach(ctx, ts[phase]); err != nil {
					return err
				}
			}
		}
	}
	for {
		settled := true
		for _, ts := range targets {
			measured, err := s.reach(ctx, ts[len(ts)-1])
			if err != nil {
				return err
			}
			settled = settled && !measured
		}
		if settled {
			return nil
		}
	}
}

// reach measures until a target is met, or cannot be.
func (s *controller) reach(ctx context.Context, t *target) (measured bool, err error) {
	for step := t.Width; ; step = math.Min(0.5, 2*step) {
		load, _ := s.next(t, step)
		if load == 0 {
			return measured, nil
		}
		if err := s.decide(ctx, t, load); err != nil {
			return measured, err
		}
		measured = true
	}
}

// decide measures one load until it is a bound of the target, or exceeds the
// sender's ability.
func (s *controller) decide(ctx context.Context, t *target, load uint64) error {
	for rejected := 0; t.Classify(s.loads.at(load)) == Undecided; {
		tr, err := s.trial(ctx, load, t.Trial)
		switch {
		case err != nil:
			return err
		case tr.Rejected == "":
			rejected = 0
			continue
		}
		if rejected++; rejected <= s.Retries {
			continue
		}
		if !tr.Short {
			return fmt.Errorf("%d trials of %d packets/s in a row were rejected, the last since: %s", rejected, load, tr.Rejected)
		}
		s.ceiling = load
		return nil
	}
	return nil
}

func (s *controller) trial(ctx context.Context, load uint64, d time.Duration) (Trial, error) {
	if len(s.all) >= s.MaxTrials || s.Budget > 0 && s.spent+d > s.Budget {
		return Trial{}, errBudget
	}
	t, err := runOne(ctx, s.measurer, load, d)
	if err != nil {
		return t, err
	}
	s.all = append(s.all, t)
	s.spent += d
	s.loads.add(t)
	if t.Rejected == "" && s.ceiling > 0 && load >= s.ceiling {
		s.ceiling = 0 // it was offered after all
	}
	if s.OnTrial != nil {
		s.OnTrial(t)
	}
	return t, nil
}

func (s *controller) result(ended error) Result {
	r := Result{Trials: s.all, Duration: s.spent}
	for _, t := range s.all {
		if t.Rejected != "" {
			r.Rejected++
		}
	}
	for _, g := range s.Goals {
		t := &target{Goal: g}
		load, reason := s.next(t, g.Width)
		lo, hi := s.loads.bounds(g)
		res := GoalResult{Goal: g, Lower: lo, Upper: hi, Reason: reason}
		res.Regular = load == 0 && reason == ""
		if load != 0 && ended != nil {
			res.Reason = ended.Error()
		}
		if lo > 0 {
			res.Throughput = g.ConditionalThroughput(s.loads.at(lo))
			res.Lossless = lossless(s.loads.at(lo))
		}
		if hi > 0 {
			res.ByInstrument = byInstrument(g, s.loads.at(hi))
		}
		r.Goals = append(r.Goals, res)
	}
	return r
}

func lossless(trials []Trial) bool {
	for _, t := range trials {
		if t.Rejected == "" && t.Outcome.LossRatio() > 0 {
			return false
		}
	}
	return true
}

// byInstrument is the measuring programs' share of the loss in high-loss trials.
func byInstrument(g Goal, trials []Trial) float64 {
	var theirs, lost float64
	for _, t := range trials {
		if t.Rejected == "" && t.Outcome.LossRatio() > g.LossRatio {
			theirs += t.Outcome.byInstrument()
			lost += t.Outcome.due() - float64(t.Outcome.Received)
		}
	}
	if lost == 0 {
		return 0
	}
	return math.Min(1, theirs/lost)
}
