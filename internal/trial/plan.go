// SPDX-License-Identifier: Apache-2.0

package trial

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/drayage/dray/internal/record"
)

// Point is one offered load of a plan.
type Point struct {
	Name string `json:"name"` // "10 % of PDR"
	// Load is what is offered, packets/s.
	Load uint64 `json:"load"`
	// Share is Load as a share of the plan's reference; 0: an idle link, on
	// which Load is that of the probing packets alone.
	Share float64 `json:"share"`
}

// Plan is a series of trials at different loads, as data: nothing of it has
// been run.
type Plan struct {
	Reference string        `json:"reference"` // what Share refers to: "PDR"
	Of        uint64        `json:"of"`        // the reference, packets/s
	Trial     time.Duration `json:"trial"`     // length of each trial, ns
	Rounds    int           `json:"rounds"`    // trials of each point
	Points    []Point       `json:"points"`
}

// LoadShares are the shares of PDR under which latency is measured.
var LoadShares = []float64{0, 0.1, 0.5, 0.9}

// UnderLoad plans the measurement of latency under the LoadShares of a PDR in
// packets/s. probe is the rate of the packets that measure an idle link.
func UnderLoad(pdr, probe uint64, length time.Duration, rounds int) (Plan, error) {
	p := Plan{Reference: "PDR", Of: pdr, Trial: length, Rounds: rounds}
	for _, share := range LoadShares {
		load := uint64(math.Round(share * float64(pdr)))
		if share == 0 {
			load = probe
		}
		p.Points = append(p.Points, Point{Name: fmt.Sprintf("%g %% of PDR", 100*share), Load: load, Share: share})
	}
	if probe >= p.Points[1].Load {
		return p, fmt.Errorf("latency under load: probing with %d packets/s is no less than %s, %d packets/s: the link would not be idle", probe, p.Points[1].Name, p.Points[1].Load)
	}
	return p, p.check()
}

// Spacing says how the loads of a sweep are set apart.
type Spacing string

// Spacings of a sweep.
const (
	Linear      Spacing = "linear"
	Logarithmic Spacing = "logarithmic"
)

// Sweep plans trials at so many loads from one to another, both included, in
// packets/s: the curve of offered against forwarded rate.
func Sweep(from, to uint64, points int, spacing Spacing, length time.Duration, rounds int) (Plan, error) {
	p := Plan{Reference: "highest load", Of: to, Trial: length, Rounds: rounds}
	if from < 1 || to <= from || points < 2 || uint64(points) > to-from+1 {
		return p, fmt.Errorf("sweep of %d loads from %d to %d packets/s: need at least 2 different loads, ascending from 1", points, from, to)
	}
	for i := range points {
		x := float64(i) / float64(points-1)
		load := float64(from) + x*float64(to-from)
		switch spacing {
		case Linear:
		case Logarithmic:
			load = float64(from) * math.Pow(float64(to)/float64(from), x)
		default:
			return p, fmt.Errorf("sweep: unknown spacing %q; there are %q and %q", spacing, Linear, Logarithmic)
		}
		n := uint64(math.Round(load))
		if last := len(p.Points) - 1; last >= 0 && n <= p.Points[last].Load {
			n = p.Points[last].Load + 1 // whole packets
		}
		p.Points = append(p.Points, Point{Name: fmt.Sprintf("%d packets/s", n), Load: n, Share: float64(n) / float64(to)})
	}
	return p, p.check()
}

func (p Plan) check() error {
	if p.Trial <= 0 || p.Rounds < 1 {
		return fmt.Errorf("plan of %d rounds of trials of %v: need at least one round, and a length", p.Rounds, p.Trial)
	}
	for _, pt := range p.Points {
		if float64(pt.Load)*p.Trial.Seconds() < 1 {
			return fmt.Errorf("%s: %d packets/s for %v is not one packet; make the trials longer", pt.Name, pt.Load, p.Trial)
		}
	}
	return nil
}

// Cells are the plan's points for an Engine, which interleaves their trials in
// random order. id begins the ids of the cells.
func (p Plan) Cells(id string, demand Demand, run func(context.Context, Point, Round) (record.Trial, error)) []Cell {
	cells := make([]Cell, len(p.Points))
	for i, pt := range p.Points {
		cells[i] = Cell{
			ID: fmt.Sprintf("%s-%d", id, pt.Load), Rounds: p.Rounds, Expect: p.Trial, Demand: demand,
			Run: func(ctx context.Context, r Round) (record.Trial, error) { return run(ctx, pt, r) },
		}
	}
	return cells
}
