// SPDX-License-Identifier: Apache-2.0

package search

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
)

func mlr(t *testing.T, m Measurer, c Config) Result {
	t.Helper()
	r, err := MLR(context.Background(), m, c)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func goalOf(t *testing.T, r Result, name string) GoalResult {
	t.Helper()
	for _, g := range r.Goals {
		if g.Goal.Name == name {
			return g
		}
	}
	t.Fatalf("no result for %s", name)
	return GoalResult{}
}

var bothGoals = []Goal{NDR(time.Second, 5*time.Second), PDR(time.Second, 5*time.Second)}

// On a device without noise the bounds enclose the capacity: at NDR itself, and
// at PDR the load of which it serves 99.5 %.
func TestFindsTheCapacity(t *testing.T) {
	for _, capacity := range []float64{1500, 31_234, 310_000, 1_234_567, 12_800_000, 59_999_999} {
		d := newDevice(capacity, 1)
		r := mlr(t, d, Config{Goals: bothGoals, Min: 1000, Max: 60_000_000})
		for name, truth := range map[string]float64{"NDR": capacity, "PDR": capacity / (1 - PDRLossRatio)} {
			g := goalOf(t, r, name)
			if !g.Regular && !(g.Reason == ReasonMax && truth >= 60e6) {
				t.Errorf("capacity %.0f: %s is irregular: %s", capacity, name, g.Reason)
				continue
			}
			if float64(g.Lower) > truth+1 || g.Regular && (float64(g.Upper) < truth-1 || float64(g.Upper-g.Lower) > g.Goal.Width*float64(g.Upper)*1.001) {
				t.Errorf("capacity %.0f: %s is between %d and %d, want %.0f enclosed within %g", capacity, name, g.Lower, g.Upper, truth, g.Goal.Width)
			}
			if g.Throughput > capacity+1 || g.Throughput < 0.99*capacity {
				t.Errorf("capacity %.0f: %s has a throughput of %.0f", capacity, name, g.Throughput)
			}
		}
		if len(r.Trials) > 100 {
			t.Errorf("capacity %.0f took %d trials", capacity, len(r.Trials))
		}
		if est := (Config{Goals: bothGoals, Min: 1000, Max: 60_000_000}).Estimate(); r.Duration > 2*est || r.Duration < est/4 {
			t.Errorf("capacity %.0f took %v of trials, the estimate was %v", capacity, r.Duration, est)
		}
	}
}

// On a noisy device the measured throughput is near its capacity in nearly all
// searches. It repeats better than with the binary search of RFC 2544.
func TestConvergesUnderNoise(t *testing.T) {
	const capacity, noise, seeds = 1e6, 0.02, 400
	var ours, theirs []float64
	within := 0.0
	for seed := range uint64(seeds) {
		d := newDevice(capacity, seed)
		d.noise = noise
		g := goalOf(t, mlr(t, d, Config{Goals: []Goal{PDR(time.Second, 21*time.Second)}, Min: 1000, Max: 5_000_000}), "PDR")
		if !g.Regular || g.Lower >= g.Upper {
			t.Fatalf("seed %d: %+v", seed, g)
		}
		ours = append(ours, g.Throughput)
		if math.Abs(g.Throughput/capacity-1) < noise {
			within++
		}
		d = newDevice(capacity, seed)
		d.noise = noise
		b, err := Binary{Min: 1000, Max: 5_000_000, LossRatio: PDRLossRatio, Trial: time.Second, Resolution: 0.005}.Throughput(context.Background(), d)
		if err != nil {
			t.Fatal(err)
		}
		theirs = append(theirs, b.Goals[0].Throughput)
	}
	t.Logf("MLRsearch %s, binary search %s, %.1f %% within one σ of the noise", spread(ours), spread(theirs), 100*within/seeds)
	if within/seeds < 0.95 {
		t.Errorf("%.1f %% of searches are within one σ of the noise, want 95 %%", 100*within/seeds)
	}
	if sd(ours) > 0.7*sd(theirs) {
		t.Errorf("spread %.4g, of the binary search %.4g: no better", sd(ours), sd(theirs))
	}
}

func sd(v []float64) float64 {
	var sum, sq float64
	for _, x := range v {
		sum += x
	}
	mean := sum / float64(len(v))
	for _, x := range v {
		sq += (x - mean) * (x - mean)
	}
	return math.Sqrt(sq / float64(len(v)-1))
}

func spread(v []float64) string {
	s := slices.Clone(v)
	slices.Sort(s)
	return fmt.Sprintf("%.4g ± %.2g", s[len(s)/2], sd(v))
}

// If half of the trials escape the stalls, NDR stays at the capacity; if nearly
// none does, NDR falls to nothing, and PDR stays.
func TestBurstyLoss(t *testing.T) {
	const capacity = 2e6
	config := Config{Goals: []Goal{NDR(time.Second, 21*time.Second), PDR(time.Second, 21*time.Second)}, Min: 10_000, Max: 10_000_000}
	for seed := range uint64(20) {
		rare := newDevice(capacity, seed)
		rare.stalls, rare.stall = 0.1, 0.001
		if g := goalOf(t, mlr(t, rare, config), "NDR"); !g.Regular || math.Abs(g.Throughput/capacity-1) > 0.01 {
			t.Errorf("seed %d: a stall in 10 s: %v, want NDR near %g", seed, g, float64(capacity))
		}
		often := newDevice(capacity, seed)
		often.stalls, often.stall = 3, 0.0005
		r := mlr(t, often, config)
		if g := goalOf(t, r, "NDR"); g.Regular || g.Reason != ReasonMin || g.Lower != 0 {
			t.Errorf("seed %d: three stalls a second: %v, want no NDR", seed, g)
		}
		if g := goalOf(t, r, "PDR"); !g.Regular || math.Abs(g.Throughput/capacity-1) > 0.02 {
			t.Errorf("seed %d: three stalls a second: %v, want PDR near %g", seed, g, float64(capacity))
		}
	}
}

// A queue lets short trials pass beyond the capacity. The result depends on the
// trial length, however short the search's first trials were.
func TestQueueing(t *testing.T) {
	const capacity, queue = 1e6, 100_000
	for _, length := range []time.Duration{time.Second, 10 * time.Second} {
		truth := capacity + queue/length.Seconds()
		for _, initial := range []time.Duration{0, 100 * time.Millisecond} {
			d := newDevice(capacity, 1)
			d.queue = queue
			goal := NDR(length, length)
			goal.Initial = initial
			r := mlr(t, d, Config{Goals: []Goal{goal}, Min: 1000, Max: 10_000_000})
			g := r.Goals[0]
			if !g.Regular || float64(g.Lower) > truth || float64(g.Upper) < truth {
				t.Errorf("trials of %v after ones of %v: %d…%d, want %.0f enclosed", length, initial, g.Lower, g.Upper, truth)
			}
			short := slices.ContainsFunc(r.Trials, func(t Trial) bool { return t.Duration < length })
			if short != (initial > 0) {
				t.Errorf("trials of %v after ones of %v: short trials %v", length, initial, short)
			}
		}
	}
}

// Short first trials save time and change nothing if there is no queue.
func TestInitialTrialsSaveTime(t *testing.T) {
	run := func(initial time.Duration) Result {
		goal := NDR(4*time.Second, 4*time.Second)
		goal.Initial = initial
		return mlr(t, newDevice(777_777, 1), Config{Goals: []Goal{goal}, Min: 1000, Max: 50_000_000})
	}
	long, short := run(0), run(250*time.Millisecond)
	if short.Duration >= long.Duration*3/4 {
		t.Errorf("with short first trials it took %v, without %v", short.Duration, long.Duration)
	}
	if g := short.Goals[0]; !g.Regular || g.Lower > 777_777 || g.Upper < 777_777 {
		t.Errorf("with short first trials: %v", g)
	}
}

// A port that accepts only what it carries makes the sender leave packets unsent:
// they are lost, and the result says who lost them.
func TestBackPressureCountsAsLoss(t *testing.T) {
	d := newDevice(3e6, 1)
	d.holds = true
	r := mlr(t, d, Config{Goals: bothGoals, Min: 1000, Max: 20_000_000})
	for _, g := range r.Goals {
		truth := 3e6 / (1 - g.Goal.LossRatio)
		if !g.Regular || float64(g.Lower) > truth || float64(g.Upper) < truth || g.ByInstrument != 1 {
			t.Errorf("%s: %d…%d, by instrument %g, %s; want %.0f enclosed, and all unsent", g.Goal.Name, g.Lower, g.Upper, g.ByInstrument, g.Reason, truth)
		}
	}
	if r.Rejected == 0 {
		t.Error("no trial was rejected, though the sender offered far too little")
	}
	if plain := mlr(t, newDevice(3e6, 1), Config{Goals: bothGoals, Min: 1000, Max: 20_000_000}); plain.Goals[0].ByInstrument != 0 {
		t.Errorf("a device that drops: by instrument %g, want 0", plain.Goals[0].ByInstrument)
	}
}

// A sender that breaks down beyond a load makes no upper bound.
func TestSenderThatCannotOffer(t *testing.T) {
	d := newDevice(10e6, 1)
	d.sender, d.senderShare = 2e6, 0.8
	g := mlr(t, d, Config{Goals: []Goal{NDR(time.Second, time.Second)}, Min: 1000, Max: 20_000_000}).Goals[0]
	if g.Regular || g.Reason != ReasonSender || g.Upper != 0 || g.Lower > 2e6 || float64(g.Lower) < 2e6*0.995 {
		t.Errorf("%+v: want at least 2 Mpps, limited by the sender", g)
	}
}

func TestBeyondTheLoadsAllowed(t *testing.T) {
	top := mlr(t, newDevice(1e9, 1), Config{Goals: bothGoals, Min: 1000, Max: 1_000_000})
	bottom := mlr(t, newDevice(100, 1), Config{Goals: bothGoals, Min: 1000, Max: 1_000_000})
	for i := range bothGoals {
		if g := top.Goals[i]; g.Regular || g.Reason != ReasonMax || g.Lower != 1_000_000 || g.Throughput != 1e6 {
			t.Errorf("faster than allowed: %+v", g)
		}
		if g := bottom.Goals[i]; g.Regular || g.Reason != ReasonMin || g.Lower != 0 || g.Throughput != 0 {
			t.Errorf("slower than allowed: %+v", g)
		}
	}
}

// glitch spoils some trials of a device.
type glitch struct {
	*device
	spoil func(trial int, o Outcome) (Outcome, error)
}

func (g glitch) Measure(ctx context.Context, load uint64, d time.Duration) (Outcome, error) {
	o, err := g.device.Measure(ctx, load, d)
	if err != nil {
		return o, err
	}
	return g.spoil(g.trials, o)
}

func TestRejectedTrialsAreRepeated(t *testing.T) {
	clean := mlr(t, newDevice(1e6, 1), Config{Goals: bothGoals, Min: 1000, Max: 20_000_000})
	g := glitch{newDevice(1e6, 1), func(n int, o Outcome) (Outcome, error) {
		switch n % 6 {
		case 1:
			o.Received = o.Sent + 1
		case 3:
			return o, &RejectedError{Reason: "the receiver died"}
		case 5:
			o.Sent += o.Sent / 10
		}
		return o, nil
	}}
	r := mlr(t, g, Config{Goals: bothGoals, Min: 1000, Max: 20_000_000})
	for i := range r.Goals {
		if r.Goals[i] != clean.Goals[i] {
			t.Errorf("with glitches %+v, without %+v", r.Goals[i], clean.Goals[i])
		}
	}
	if r.Rejected < len(r.Trials)/3 || clean.Rejected > 0 {
		t.Errorf("%d of %d trials rejected, and %d of the clean ones", r.Rejected, len(r.Trials), clean.Rejected)
	}
}

func TestTrialsThatNeverCountEndTheSearch(t *testing.T) {
	always := glitch{newDevice(1e6, 1), func(_ int, o Outcome) (Outcome, error) {
		o.Received = o.Sent + 1
		return o, nil
	}}
	r, err := MLR(context.Background(), always, Config{Goals: bothGoals, Min: 1000, Max: 20_000_000})
	if err == nil || !strings.Contains(err.Error(), "negative loss") || len(r.Trials) != DefaultRetries+1 {
		t.Errorf("%d trials, %v; want an error that names the negative loss", len(r.Trials), err)
	}
	broken := glitch{newDevice(1e6, 1), func(n int, o Outcome) (Outcome, error) {
		if n == 4 {
			return o, errors.New("no such port")
		}
		return o, nil
	}}
	r, err = MLR(context.Background(), broken, Config{Goals: bothGoals, Min: 1000, Max: 20_000_000})
	if err == nil || !strings.Contains(err.Error(), "no such port") || len(r.Trials) != 3 || r.Goals[0].Regular {
		t.Errorf("%d trials, %v, %+v; want the error and the partial result", len(r.Trials), err, r.Goals)
	}
}

func TestBudgetAndContext(t *testing.T) {
	c := Config{Goals: bothGoals, Min: 1000, Max: 20_000_000, Budget: 5 * time.Second}
	r := mlr(t, newDevice(1e6, 1), c)
	if r.Duration > c.Budget || r.Goals[0].Regular || r.Goals[0].Reason != ReasonBudget {
		t.Errorf("%v of trials, %+v; want the budget kept and named", r.Duration, r.Goals[0])
	}
	ctx, cancel := context.WithCancel(context.Background())
	c = Config{Goals: bothGoals, Min: 1000, Max: 20_000_000, OnTrial: func(Trial) { cancel() }}
	if r, err := MLR(ctx, newDevice(1e6, 1), c); !errors.Is(err, context.Canceled) || len(r.Trials) != 1 {
		t.Errorf("%d trials, %v; want the search to end with its context", len(r.Trials), err)
	}
}

func TestRefusesASenselessSearch(t *testing.T) {
	ok := NDR(time.Second, time.Second)
	with := func(change func(*Goal)) []Goal {
		g := ok
		change(&g)
		return []Goal{g}
	}
	for name, c := range map[string]Config{
		"no goal":       {Min: 1, Max: 2},
		"min 0":         {Goals: []Goal{ok}, Max: 10},
		"max below min": {Goals: []Goal{ok}, Min: 10, Max: 9},
		"no packet":     {Goals: with(func(g *Goal) { g.Initial = time.Millisecond }), Min: 10, Max: 1e6},
		"loss of 1":     {Goals: with(func(g *Goal) { g.LossRatio = 1 }), Min: 10, Max: 1e6},
		"loss NaN":      {Goals: with(func(g *Goal) { g.LossRatio = math.NaN() }), Min: 10, Max: 1e6},
		"exceed of 1":   {Goals: with(func(g *Goal) { g.ExceedRatio = 1 }), Min: 10, Max: 1e6},
		"no width":      {Goals: with(func(g *Goal) { g.Width = 0 }), Min: 10, Max: 1e6},
		"sum too short": {Goals: with(func(g *Goal) { g.Sum = time.Millisecond }), Min: 10, Max: 1e6},
		"long initial":  {Goals: with(func(g *Goal) { g.Initial = time.Minute }), Min: 10, Max: 1e6},
		"retries":       {Goals: []Goal{ok}, Min: 10, Max: 1e6, Retries: -1},
	} {
		d := newDevice(1e3, 1)
		if _, err := MLR(context.Background(), d, c); err == nil || d.trials > 0 {
			t.Errorf("%s: %v after %d trials, want an error before any", name, err, d.trials)
		}
	}
}

// Whatever a device does, a search ends, keeps to the allowed loads, and returns
// no regular result with unmeasured bounds.
func TestEndsOnAnyDevice(t *testing.T) {
	for seed := range uint64(300) {
		rng := rand.New(rand.NewPCG(seed, 1))
		wild := MeasurerFunc(func(_ context.Context, load uint64, d time.Duration) (Outcome, error) {
			sent := uint64(float64(load) * d.Seconds() * (0.9 + 0.1*rng.Float64()))
			return Outcome{Sent: sent, Unsent: uint64(rng.IntN(3)), Received: uint64(float64(sent) * min(1, 0.98+0.04*rng.Float64()))}, nil
		})
		goals := []Goal{NDR(time.Second, 3*time.Second), PDR(time.Second, 7*time.Second)}
		goals[1].Initial = 100 * time.Millisecond
		r := mlr(t, wild, Config{Goals: goals, Min: 100, Max: 1_000_000, MaxTrials: 400})
		if len(r.Trials) > 400 {
			t.Fatalf("seed %d: %d trials", seed, len(r.Trials))
		}
		for _, tr := range r.Trials {
			if tr.Load < 100 || tr.Load > 1_000_000 {
				t.Fatalf("seed %d: a trial at %d packets/s", seed, tr.Load)
			}
		}
		for _, g := range r.Goals {
			if g.Regular && (g.Lower == 0 || g.Upper <= g.Lower || float64(g.Upper-g.Lower) > g.Goal.Width*float64(g.Upper)*1.001) {
				t.Errorf("seed %d: regular with bounds %d…%d", seed, g.Lower, g.Upper)
			}
			if !g.Regular && g.Reason == "" {
				t.Errorf("seed %d: irregular without a reason: %+v", seed, g)
			}
		}
	}
}
