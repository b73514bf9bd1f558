// SPDX-License-Identifier: Apache-2.0

// Package search finds the highest load that a system carries well enough:
// MLRsearch (RFC 9971) for any number of goals at once, such as NDR and PDR, and
// the binary search of RFC 2544. It is pure: the given Measurer makes trials, and
// the same outcomes lead to the same result.
package search

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"
)

// Measurer makes one trial: it offers load packets/s for the duration d, waits
// until packets in flight have arrived, and returns their outcome. It does its
// own warm-up. A *RejectedError requests a repeated trial; any other error ends
// the search.
type Measurer interface {
	Measure(ctx context.Context, load uint64, d time.Duration) (Outcome, error)
}

// MeasurerFunc makes a function a Measurer.
type MeasurerFunc func(ctx context.Context, load uint64, d time.Duration) (Outcome, error)

// Measure calls f.
func (f MeasurerFunc) Measure(ctx context.Context, load uint64, d time.Duration) (Outcome, error) {
	return f(ctx, load, d)
}

// Outcome is the fate of one trial's packets. With several streams each count is
// their sum, and so is the load.
type Outcome struct {
	Sent     uint64 `json:"sent"`     // packets that were sent in time
	Received uint64 `json:"received"` // different packets that arrived
	// Unsent counts packets that were due but not sent in time. They count as lost.
	Unsent uint64 `json:"unsent"`
	// ReceiverDrops counts lost packets that arrived, but that the measuring program
	// was too slow to receive. They count as lost, and show who lost them.
	ReceiverDrops uint64        `json:"receiver_drops,omitempty"`
	Lateness      time.Duration `json:"lateness"` // p99 of sent − due, ns; for the report
}

// due is how many packets the trial should have sent.
func (o Outcome) due() float64 { return float64(o.Sent) + float64(o.Unsent) }

// LossRatio is the share of the packets due that did not arrive: RFC 9971's Trial
// Loss Ratio, with packets not sent in time counted as lost.
func (o Outcome) LossRatio() float64 {
	if o.due() == 0 {
		return 1
	}
	return 1 - math.Min(1, float64(o.Received)/o.due())
}

// byInstrument is how many of the lost packets the measuring programs lost.
func (o Outcome) byInstrument() float64 { return float64(o.Unsent) + float64(o.ReceiverDrops) }

// Trial is one trial of a search.
type Trial struct {
	Load     uint64        `json:"load"`     // packets/s requested
	Duration time.Duration `json:"duration"` // ns
	Outcome  Outcome       `json:"outcome"`
	// Rejected is why the trial does not count; empty: it does.
	Rejected string `json:"rejected,omitempty"`
	// Short means that it was rejected because the sender offered too little.
	Short bool `json:"short,omitempty"`
}

// RejectedError is a Measurer's error for a trial that does not count.
type RejectedError struct {
	Reason string
}

func (e *RejectedError) Error() string { return "trial rejected: " + e.Reason }

// MaxMiss is the tolerated relative error of the offered load.
const MaxMiss = 0.05

// Check returns why a trial must not count. Either its offered load misses the
// request by over MaxMiss, or by over one packet if that is more. Or more packets
// arrived than were sent. short means that the sender offered too little; reason
// is empty if the trial counts.
func Check(load uint64, d time.Duration, o Outcome) (reason string, short bool) {
	asked := float64(load) * d.Seconds()
	tolerance := math.Max(1, MaxMiss*asked)
	switch sent := float64(o.Sent); {
	case o.Received > o.Sent:
		return fmt.Sprintf("%d packets received of %d sent: negative loss", o.Received, o.Sent), false
	case sent < asked-tolerance:
		return fmt.Sprintf("offered %.4g packets/s instead of %d: %.1f %% too few", sent/d.Seconds(), load, 100*(1-sent/asked)), true
	case sent > asked+tolerance:
		return fmt.Sprintf("offered %.4g packets/s instead of %d: %.1f %% too many", sent/d.Seconds(), load, 100*(sent/asked-1)), false
	}
	return "", false
}

// runOne makes one trial and checks it.
func runOne(ctx context.Context, m Measurer, load uint64, d time.Duration) (Trial, error) {
	t := Trial{Load: load, Duration: d}
	if err := ctx.Err(); err != nil {
		return t, err
	}
	o, err := m.Measure(ctx, load, d)
	var rejected *RejectedError
	switch {
	case errors.As(err, &rejected):
		t.Outcome, t.Rejected = o, rejected.Reason
		return t, nil
	case err != nil:
		return t, fmt.Errorf("trial of %d packets/s for %v: %w", load, d, err)
	}
	t.Outcome = o
	t.Rejected, t.Short = Check(load, d, o)
	return t, nil
}
