// SPDX-License-Identifier: Apache-2.0

package search

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Binary is the input of a binary search in the usual practice of RFC 2544 (ETSI
// GS NFV-TST 009 §12.3.2): one goal, hard bounds, and their arithmetic mean as
// the next load.
type Binary struct {
	Min        uint64        `json:"min"` // packets/s
	Max        uint64        `json:"max"`
	LossRatio  float64       `json:"loss_ratio"` // RFC 2544: 0
	Trial      time.Duration `json:"trial"`      // RFC 2544 §24: at least 60 s
	Resolution float64       `json:"resolution"` // share of the upper bound at which to stop
	// Verify is how many trials a load may take to get one with tolerable loss: 1 is
	// RFC 2544, more is TST 009 §12.3.3 (loss verification). 0 counts as 1.
	Verify  int `json:"verify,omitempty"`
	Retries int `json:"retries,omitempty"` // as in Config
}

// Throughput runs the search and returns it in the form of MLR: the goal's exceed
// ratio is the share of a load's trials that may fail. A load that the sender
// cannot offer ends it like an upper bound, irregularly.
func (b Binary) Throughput(ctx context.Context, m Measurer) (Result, error) {
	if b.Verify == 0 {
		b.Verify = 1
	}
	if b.Retries == 0 {
		b.Retries = DefaultRetries
	}
	goal := Goal{Name: "RFC 2544 binary search", LossRatio: b.LossRatio, Trial: b.Trial, Sum: time.Duration(b.Verify) * b.Trial,
		ExceedRatio: float64(b.Verify-1) / float64(max(1, b.Verify)), Width: b.Resolution}
	c := Config{Goals: []Goal{goal}, Min: b.Min, Max: b.Max, Retries: b.Retries, MaxTrials: DefaultMaxTrials}
	if b.Verify < 0 {
		return Result{}, fmt.Errorf("search: %d trials a load", b.Verify)
	}
	if err := c.check(); err != nil {
		return Result{}, err
	}
	s := &controller{Config: c, measurer: m, loads: newLedger()}
	err := s.bisect(ctx)
	r := s.result(err)
	if errors.Is(err, errBudget) {
		err = nil
	}
	return r, err
}

// bisect confirms the highest load as the upper bound, then halves the interval
// down to the lowest.
func (s *controller) bisect(ctx context.Context) error {
	t := &target{Goal: s.Goals[0]}
	low, high := s.Min, s.Max
	if ok, err := s.holds(ctx, t, high); err != nil || ok {
		return err
	}
	if ok, err := s.holds(ctx, t, low); err != nil || !ok {
		return err
	}
	for float64(high-low) > t.Width*float64(high) && high-low > 1 {
		middle := low + (high-low)/2
		ok, err := s.holds(ctx, t, middle)
		if err != nil {
			return err
		}
		if ok {
			low = middle
		} else {
			high = middle
		}
	}
	return nil
}

// holds measures a load and reports whether it is a lower bound.
func (s *controller) holds(ctx context.Context, t *target, load uint64) (bool, error) {
	err := s.decide(ctx, t, load)
	return err == nil && t.Classify(s.loads.at(load)) == LowerBound, err
}
