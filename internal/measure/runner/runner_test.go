// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/drayage/dray/internal/host"
	"github.com/drayage/dray/internal/result/record"
	"github.com/drayage/dray/internal/spec/inventory"
)

type memory struct {
	trials []record.Trial
	err    error
}

func (m *memory) Write(t record.Trial) error {
	m.trials = append(m.trials, t)
	return m.err
}

func env() record.Environment { return record.Environment{CPUs: []int{0, 1}, Governor: "performance"} }

func measured(context.Context, *Turn) (record.Trial, error) {
	return record.Trial{Quantity: record.QThroughput, Start: time.Unix(1, 0), Throughput: &record.Throughput{BitsPerSecond: 1}}, nil
}

func items(n int) []Item {
	var list []Item
	for i := range n {
		list = append(list, Item{ID: fmt.Sprintf("c%d", i), Measure: Single(0, measured)})
	}
	return list
}

// run runs items, and returns the written records.
func run(r *Runner, list []Item) ([]record.Trial, error) {
	sink := &memory{}
	r.Sink, r.Items, r.Env = sink, List(list), env
	err := r.Run(context.Background())
	return sink.trials, err
}

func TestEveryItemHasOneTurnInARound(t *testing.T) {
	list := items(4)
	list[1].Rounds, list[1].NoWarmup = 1, true
	trials, err := run(&Runner{Seed: 7, Rounds: 3, Warmups: 1}, list)
	if err != nil {
		t.Fatal(err)
	}
	if len(trials) != 3+4+3+3 {
		t.Fatalf("%d trials", len(trials))
	}
	ids := map[string]bool{}
	for i, trial := range trials {
		ids[trial.ID] = true
		if trial.Order != i || trial.Seed != 7 || trial.Schema != record.Schema || trial.Env.Governor != "performance" || trial.Marks == nil {
			t.Errorf("trial %d: %+v", i, trial)
		}
		if trial.Warmup != (i < 3) {
			t.Errorf("trial %d: warm-up %v", i, trial.Warmup)
		}
	}
	for _, id := range []string{"c0-w0", "c0-r0", "c0-r2", "c1-r0", "c3-r2"} {
		if !ids[id] {
			t.Errorf("no trial %s among %v", id, ids)
		}
	}
	if len(ids) != len(trials) || ids["c1-r1"] || ids["c1-w0"] {
		t.Errorf("ids %v", ids)
	}
}

func order(r *Runner, list []Item) []string {
	r.Items = List(list)
	var out []string
	for _, round := range r.rounds() {
		for _, t := range r.draw(round) {
			out = append(out, t.ID())
		}
	}
	return out
}

// Further rounds of a run do not repeat the ids of its earlier records.
func TestProlongedRunGoesOn(t *testing.T) {
	r := &Runner{Seed: 7, Rounds: 2, Done: map[string]bool{}}
	first, err := run(r, items(2))
	if err != nil {
		t.Fatal(err)
	}
	for _, trial := range first {
		r.Done[trial.ID] = true
	}
	again := items(2)[:1]
	again[0].From, again[0].Rounds = 2, 4
	second, err := run(r, again)
	if err != nil {
		t.Fatal(err)
	}
	ids := map[string]bool{}
	for i, trial := range append(first, second...) {
		if trial.Order != i || ids[trial.ID] {
			t.Errorf("trial %d: order %d, id %s (seen before: %v)", i, trial.Order, trial.ID, ids[trial.ID])
		}
		ids[trial.ID] = true
	}
	if len(second) != 2 || second[1].Round != 3 {
		t.Errorf("the second run: %+v", second)
	}
}

// A resumed run measures the rest, in the whole run's order.
func TestResumedRunMeasuresTheRest(t *testing.T) {
	all, err := run(&Runner{Seed: 7, Rounds: 2, Warmups: 1}, items(3))
	if err != nil {
		t.Fatal(err)
	}
	const made = 4
	r := &Runner{Seed: 7, Rounds: 2, Warmups: 1, Done: map[string]bool{}}
	for _, trial := range all[:made] {
		r.Done[trial.ID] = true
	}
	rest, err := run(r, items(3))
	if err != nil || len(rest) != len(all)-made {
		t.Fatalf("%d of %d trials, %v", len(rest), len(all)-made, err)
	}
	for i, trial := range rest {
		if trial.ID != all[made+i].ID || trial.Order != made+i {
			t.Errorf("%s with order %d; want %s", trial.ID, trial.Order, all[made+i].ID)
		}
	}
}

func TestOrderComesFromTheSeed(t *testing.T) {
	list := items(6)
	first := order(&Runner{Seed: 1, Rounds: 8}, list)
	if again := order(&Runner{Seed: 1, Rounds: 8}, list); !slices.Equal(first, again) {
		t.Error("the same seed gave two orders")
	}
	if other := order(&Runner{Seed: 2, Rounds: 8}, list); slices.Equal(first, other) {
		t.Error("two seeds gave one order")
	}
	// Rounds are shuffled one by one: all of a round before any of the next.
	same := 0
	for r := range 8 {
		round := first[6*r : 6*r+6]
		for _, id := range round {
			if !strings.HasSuffix(id, fmt.Sprintf("-r%d", r)) {
				t.Fatalf("%s in round %d", id, r)
			}
		}
		if round[0] == fmt.Sprintf("c0-r%d", r) {
			same++
		}
	}
	if same == 8 {
		t.Error("every round begins with the same item")
	}
}

func TestTwiceMeasuredItem(t *testing.T) {
	list := items(3)
	list[1].Twice = true
	r := &Runner{Seed: 1, Rounds: 2, Warmups: 1, Items: List(list)}
	ids := order(r, list)
	if len(ids) != 3+4+4 || !slices.Contains(ids, "c1-r0-again") || !slices.Contains(ids, "c1-r1-again") || slices.Contains(ids, "c1-w0-again") {
		t.Errorf("%v", ids)
	}
	if slices.Index(ids, "c1-r0") > slices.Index(ids, "c1-r0-again") {
		t.Errorf("the second measurement comes first: %v", ids)
	}
}

func TestFailureIsARecord(t *testing.T) {
	list := items(2)
	list[0].Measure = Single(0, func(context.Context, *Turn) (record.Trial, error) {
		return record.Trial{Link: "l", Quantity: record.QLatency}, errors.New("no route")
	})
	trials, err := run(&Runner{Rounds: 2}, list)
	if err != nil || len(trials) != 4 {
		t.Fatalf("%d trials, %v", len(trials), err)
	}
	for _, trial := range trials {
		failed := strings.HasPrefix(trial.ID, "c0")
		if (trial.Error == "no route") != failed || trial.Start.IsZero() {
			t.Errorf("%+v", trial)
		}
	}
}

func TestTurnThatHangsFails(t *testing.T) {
	list := items(1)
	list[0].Measure = Single(time.Millisecond, func(ctx context.Context, _ *Turn) (record.Trial, error) {
		<-ctx.Done()
		return record.Trial{}, ctx.Err()
	})
	trials, err := run(&Runner{Rounds: 1}, list)
	if err != nil || len(trials) != 1 || !strings.HasPrefix(trials[0].Error, "given up after 1ms") {
		t.Errorf("%+v, %v", trials, err)
	}
}

func TestCancelEndsTheRun(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	list := items(3)
	runs := 0
	for i := range list {
		list[i].Measure = Single(0, func(ctx context.Context, turn *Turn) (record.Trial, error) {
			if runs++; runs == 2 {
				cancel()
				return record.Trial{}, ctx.Err()
			}
			return measured(ctx, turn)
		})
	}
	sink := &memory{}
	err := (&Runner{Rounds: 3, Sink: sink, Env: env, Items: List(list)}).Run(ctx)
	if !errors.Is(err, context.Canceled) || !errors.Is(err, ErrInterrupted) || len(sink.trials) != 1 || runs != 2 {
		t.Errorf("%v, %d written, %d run", err, len(sink.trials), runs)
	}
}

func TestFullDiskEndsTheRun(t *testing.T) {
	full := errors.New("no space left")
	err := (&Runner{Rounds: 1, Sink: &memory{err: full}, Env: env, Items: List(items(2))}).Run(context.Background())
	if !errors.Is(err, full) || errors.Is(err, ErrInterrupted) {
		t.Errorf("error %v", err)
	}
}

func TestLoadOfTheMachineIsRecorded(t *testing.T) {
	// Reads come in threes: before the pause, after it, and after the trial.
	reads := []host.CPUTimes{{Total: 0, Idle: 0}, {Total: 100, Idle: 50}, {Total: 200, Idle: 70, Stolen: 5}}
	r := &Runner{Rounds: 1}
	r.cpuTimes = func() (host.CPUTimes, error) {
		next := reads[0]
		reads = reads[1:]
		return next, nil
	}
	trials, err := run(r, items(1))
	if err != nil {
		t.Fatal(err)
	}
	got := trials[0]
	if got.Env.BusyDuring < 0.79 || got.Env.BusyDuring > 0.81 || got.Env.Stolen < 0.049 || got.Env.Stolen > 0.051 {
		t.Errorf("busy %v, stolen %v; want 0.80 and 0.05", got.Env.BusyDuring, got.Env.Stolen)
	}
	if !slices.Equal(got.Marks, []string{record.MarkBusy, record.MarkStolen}) {
		t.Errorf("marks %q", got.Marks)
	}
}

// What a chain's own switches poll away is no other work.
func TestOwnWorkIsNotBusy(t *testing.T) {
	for _, c := range []struct {
		own  time.Duration // in the second before the turn, of 2 CPUs
		want []string
	}{{0, []string{record.MarkBusy}}, {time.Second, []string{}}, {500 * time.Millisecond, []string{record.MarkBusy}}} {
		reads := []host.CPUTimes{{}, {Total: 200, Idle: 90}, {Total: 400, Idle: 180}}
		r := &Runner{Rounds: 1}
		r.cpuTimes = func() (host.CPUTimes, error) {
			next := reads[0]
			reads = reads[1:]
			return next, nil
		}
		spent := time.Hour - c.own
		r.Own = func() (time.Duration, error) { spent += c.own; return spent, nil }
		trials, err := run(r, items(1))
		if err != nil {
			t.Fatal(err)
		}
		if got := trials[0].Marks; !slices.Equal(got, c.want) {
			t.Errorf("own work of %v: marks %q, want %q", c.own, got, c.want)
		}
	}
}

// Another dray that begins during a turn is seen at its end.
func TestParallelRunIsSeenAfterTheTurn(t *testing.T) {
	others := 0
	r := &Runner{Rounds: 2, OtherRuns: func() int { others++; return others - 1 }}
	trials, err := run(r, items(1))
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []bool{false, true} {
		if got := slices.Contains(trials[i].Marks, record.MarkParallel); got != want {
			t.Errorf("trial %d: marks %q", i, trials[i].Marks)
		}
	}
}

// A resumed run warms up again what it still measures, and leaves no second record.
func TestResumedRunWarmsUpAgain(t *testing.T) {
	whole, err := run(&Runner{Rounds: 2, Warmups: 1}, items(2))
	if err != nil {
		t.Fatal(err)
	}
	for made, want := range map[int]int{4: 2, 6: 0} { // of 2 warm-ups and 4 trials
		done, warm, left := map[string]bool{}, 0, map[string]bool{}
		for _, trial := range whole {
			if len(done) < made {
				done[trial.ID] = true
			} else {
				left[strings.TrimSuffix(trial.ID, "-r1")] = true
			}
		}
		list := items(2)
		for i := range list {
			list[i].Measure = Single(0, func(ctx context.Context, turn *Turn) (record.Trial, error) {
				if turn.Round.Warmup {
					warm++
				}
				return measured(ctx, turn)
			})
		}
		r := &Runner{Rounds: 2, Warmups: 1, Done: done}
		trials, err := run(r, list)
		if err != nil {
			t.Fatal(err)
		}
		if warm != want || len(trials) != 6-made || made < 6 && trials[0].Order != made {
			t.Errorf("after %d trials: %d warm-ups, want %d; %+v", made, warm, want, trials)
		}
	}
}

func TestProgressCountsDown(t *testing.T) {
	list := items(2)
	list[0].Expect, list[1].Expect = time.Second, 2*time.Second
	var left []time.Duration
	r := &Runner{Rounds: 2, Progress: func(p Progress) {
		left = append(left, p.Left)
		if p.Rounds != 2 || p.Item.ID == "" || p.Turns != 2 || p.Turn != (len(left)-1)%2+1 {
			t.Errorf("%+v", p)
		}
	}}
	if _, err := run(r, list); err != nil {
		t.Fatal(err)
	}
	if left[0] != 6*time.Second+4*Watched || !slices.IsSortedFunc(left, func(a, b time.Duration) int { return int(b - a) }) {
		t.Errorf("left %v", left)
	}
}

// If a run is cut short, every item is measured once, and Reserved items in every
// round.
func TestReservedItemsGetTheirRounds(t *testing.T) {
	const each = time.Second
	for _, c := range []struct {
		atMost time.Duration // in turns
		want   []int         // turns of the two reserved items, and of all
	}{{0, []int{10, 100}}, {60, []int{10, 60}}, {28, []int{10, 28}}, {22, []int{4, 22}}} {
		list := items(20)
		for i := range list {
			list[i].Expect, list[i].Reserved = each-Watched, i < 2
		}
		var now time.Duration
		r := &Runner{Rounds: 5, Items: List(list), Budget: Budget{AtMost: c.atMost * each, spent: func() time.Duration { return now }}}
		var reserved, all int
		rounds := r.rounds()
		r.later = r.costs(rounds)
		for _, round := range rounds {
			r.later = r.later[1:]
			turns := r.draw(round)
			for i, turn := range turns {
				if !r.fits(turns[i:]) {
					continue
				}
				now += each
				all++
				if turn.Item.Reserved {
					reserved++
				}
			}
		}
		if reserved != c.want[0] || all != c.want[1] {
			t.Errorf("in the time of %d turns: %d of the reserved items, %d in all; want %v", c.atMost, reserved, all, c.want)
		}
	}
}

func TestWholeRounds(t *testing.T) {
	for _, c := range []struct{ atMost, longest, spent time.Duration }{{10, 5, 5}, {0, 50, 50}} {
		r := &Runner{Budget: Budget{AtMost: c.atMost, WholeRounds: true, longest: c.longest, spent: func() time.Duration { return c.spent }}}
		if !r.fitsRound(Round{Number: 1}) {
			t.Errorf("%+v: there is time for a round", c)
		}
		r.Budget.AtMost, r.Budget.longest = 10, 6
		if c.spent = 5; r.fitsRound(Round{Number: 1}) || !r.fitsRound(Round{}) {
			t.Errorf("%+v: only the first round always fits", c)
		}
	}
}

func TestPreflight(t *testing.T) {
	four := record.Environment{CPUs: []int{0, 1, 2, 3}, Governor: "performance"}
	change := func(f func(*record.Environment)) record.Environment {
		e := four
		f(&e)
		return e
	}
	pinned := func(a, b []int) record.Environment {
		return change(func(e *record.Environment) { e.Pinning = map[string][]int{"a": a, "b": b} })
	}
	for name, c := range map[string]struct {
		env    record.Environment
		demand Demand
		busy   float64
		want   []string
	}{
		"calm":                     {four, Demand{"a": 2, "b": 2}, 0.19, []string{}},
		"a thread too many":        {four, Demand{"a": 3, "b": 2}, 0, []string{record.MarkOversubscribed}},
		"pinned apart":             {pinned([]int{0, 1}, []int{2, 3}), Demand{"a": 2, "b": 2}, 0, []string{}},
		"pinned to one":            {pinned([]int{0}, []int{1, 2, 3}), Demand{"a": 2, "b": 2}, 0, []string{record.MarkOversubscribed}},
		"pinned together":          {pinned([]int{0, 1}, []int{0, 1}), Demand{"a": 2, "b": 2}, 0, []string{record.MarkOversubscribed}},
		"pinned in a pinned set":   {pinned([]int{0}, []int{0, 1}), Demand{"a": 1, "b": 2}, 0, []string{record.MarkOversubscribed}},
		"one pinned, the rest not": {pinned([]int{0}, nil), Demand{"a": 1, "b": 3}, 0, []string{}},
		"governor":                 {change(func(e *record.Environment) { e.Governor = "powersave" }), nil, 0, []string{record.MarkGovernor}},
		"no cpufreq":               {change(func(e *record.Environment) { e.Governor = "none" }), nil, 0, []string{}},
		"busy":                     {four, nil, 0.21, []string{record.MarkBusy}},
		"another dray":             {change(func(e *record.Environment) { e.OtherRuns = 1 }), nil, 0, []string{record.MarkParallel}},
		"stolen":                   {change(func(e *record.Environment) { e.Stolen = 0.021 }), nil, 0, []string{record.MarkStolen}},
		"TCG":                      {change(func(e *record.Environment) { e.Virtual = inventory.VirtualTCG }), nil, 0, []string{record.MarkEmulated}},
		"KVM":                      {change(func(e *record.Environment) { e.Virtual = "QEMU Standard PC" }), nil, 0, []string{}},
	} {
		if got := Preflight(c.env, c.demand, c.busy); !slices.Equal(got, c.want) {
			t.Errorf("%s: marks %q; want %q", name, got, c.want)
		}
	}
}

func TestDemandAddsUp(t *testing.T) {
	if got := (Demand{"a": 1, "b": 1}).With(Demand{"b": 1, "c": 2}); len(got) != 3 || got["a"] != 1 || got["b"] != 2 || got["c"] != 2 {
		t.Errorf("%v", got)
	}
}

// With little time the first round has the short items first, and spare ones last, if the rounds of reserved
// items leave time.
func TestShortItemsComeFirst(t *testing.T) {
	const each = time.Second
	list := items(5)
	for i, expect := range []time.Duration{5, 1, 3, 2, 1} {
		list[i].Expect = expect*each - Watched
	}
	list[1].Spare, list[3].Spare, list[4].Reserved = true, true, true
	for atMost, want := range map[time.Duration][]string{100: {"c4", "c2", "c0", "c1", "c3"}, 12: {"c4", "c2", "c0", "c1"}} {
		var now time.Duration
		r := &Runner{Rounds: 3, Items: List(list), ShortFirst: true, Budget: Budget{AtMost: atMost * each, spent: func() time.Duration { return now }}}
		rounds := r.rounds()
		r.later = r.costs(rounds)[1:]
		turns := r.draw(rounds[0])
		var got []string
		for i, turn := range turns {
			if r.fits(turns[i:]) {
				got, now = append(got, turn.Item.ID), now+r.takes(turn)
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("in %v: %v, not %v", atMost*each, got, want)
		}
	}
}
