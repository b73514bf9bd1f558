// SPDX-License-Identifier: Apache-2.0

package trace

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/drayage/dray/internal/node"
	"github.com/drayage/dray/internal/plan"
	"github.com/drayage/dray/internal/result/record"
	"github.com/drayage/dray/internal/result/stats"
	"github.com/drayage/dray/test/testenv"
)

// hops are of a path in which packets wait on link n3 until cu takes them.
func hops(wait, cu, fh float64) *Result {
	use := &Use{Busy: Busy{Thread: "worker", CPU: 1, Ran: 0.98}, Cores: Bounded{Value: 0.98}}
	return &Result{
		Packets: 5000, Slowest: 50,
		Whole: Hop{SlowShare: wait + cu + fh},
		Hops: []Hop{
			{Name: "link n3", Waits: true, SlowShare: wait},
			{Name: "cu", Functions: []string{"cu"}, SlowShare: cu, CPU: use},
			{Name: "link fh", Waits: true, SlowShare: fh},
		},
	}
}

func TestDecide(t *testing.T) {
	r := hops(200e3, 12e3, 48e3)
	r.decide()
	if want := "cu adds 212us of 260us, 200us of it before it takes them from link n3"; !strings.HasSuffix(r.Decides, want) {
		t.Errorf("%q", r.Decides)
	}
	if !strings.Contains(r.Slow, "cu is CPU-bound: its thread worker runs for 98 % of the time, last on CPU 1") {
		t.Errorf("%q", r.Slow)
	}
	r = hops(20e3, 12e3, 480e3)
	if r.decide(); !strings.Contains(r.Decides, "waiting on link fh for the receiver at the path's end adds 480us of 512us") || r.Slow != "" {
		t.Errorf("%q, %q", r.Decides, r.Slow)
	}
}

// A verdict says of how many packets it is, and there is none of too few.
func TestDecideOfFewPackets(t *testing.T) {
	for packets, want := range map[int]string{
		5000: "in the slowest 1 % of the packets, cu adds", 425: "in the slowest 10 of 425 packets, cu adds", 2: "2 were seen at every port, and 20 are needed",
	} {
		r := hops(200e3, 12e3, 48e3)
		r.Packets, r.Slowest = packets, slowest(packets)
		if r.decide(); !strings.Contains(r.Decides, want) {
			t.Errorf("%q, want %q", r.Decides, want)
		}
		var out bytes.Buffer
		testenv.Must(t, Document("ran", []*Result{r}).Text(&out, 80))
		if shown := strings.Contains(out.String(), "“of slow”"); shown != (packets > 2) || strings.Contains(out.String(), "200us") != shown {
			t.Errorf("of %d packets:\n%s", packets, out.String())
		}
	}
}

func TestWhy(t *testing.T) {
	for want, u := range map[string]Use{
		"is CPU-bound":      {Busy: Busy{Ran: 0.99}, Cores: Bounded{Value: 1}, Rest: 0.1},
		"polls, so its CPU": {Busy: Busy{Ran: 0.99}, Cores: Bounded{Value: 1}, Rest: 1},
		"has too little":    {Busy: Busy{Ran: 0.6, Waited: 0.3}, Cores: Bounded{Value: 0.6}},
		"no CPU of its own": {},
		"not short of CPU":  {Busy: Busy{Ran: 0.3}, Cores: Bounded{Value: 0.3}},
	} {
		if got := u.why("f"); !strings.Contains(got, want) {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// A known delay is within the bounds of its quantile.
func TestQuantilesOfAKnownDelay(t *testing.T) {
	var trials [][]int64
	for trial := range 5 {
		var delays []int64
		for i := range 2000 {
			delays = append(delays, 300_000+int64(i%100)+int64(10*trial))
		}
		trials = append(trials, delays)
	}
	for _, q := range quantiles(trials) {
		if q.Low > q.Value || q.Value > q.High || q.Low < 299_000 || q.High > 301_000 {
			t.Errorf("p%v: %v [%v, %v]", q.Percentile, q.Value, q.Low, q.High)
		}
	}
	if few := quantiles([][]int64{{1, 2, 3}}); len(few) != 0 {
		t.Errorf("quantiles of three packets: %v", few)
	}
}

func TestLoss(t *testing.T) {
	if l := lossOf([]stats.Cluster{{Events: 3, N: 1000}, {Events: 1, N: 1000}}); l == nil || l.Lost != 4 || l.Of != 2000 || l.High <= 0.002 {
		t.Errorf("%+v", l)
	}
	if l := lossOf([]stats.Cluster{{Events: 3, N: 1000}, {}}); l != nil {
		t.Errorf("a trial that cannot count: %+v", l)
	}
}

func TestCost(t *testing.T) {
	trial := func(ns int64) record.Trial {
		return record.Trial{OneWay: &record.OneWay{Latency: histogram(slow(ns))}}
	}
	tr := &Trace{}
	for i := range int64(6) {
		tr.plain, tr.observed = append(tr.plain, trial(1000+i)), append(tr.observed, trial(1100+2*i))
	}
	if c := tr.cost(); c == nil || c.Value < 1.08 || c.Value > 1.12 || c.Low > c.Value || c.High < c.Value {
		t.Errorf("%+v", c)
	}
	if c := (&Trace{}).cost(); c != nil {
		t.Errorf("the cost of nothing: %+v", c)
	}
}

// An interval over many orders of magnitude is no figure.
func TestCostOfTooFewRounds(t *testing.T) {
	for want, c := range map[string]Cost{
		"0.9 times that without [0.8, 1.01]":                       {Bounded{0.9, 0.8, 1.01}, 1.12},
		"is not known: 2 rounds are too few to tell a factor of 2": {Bounded{0.711, 6.59e-13, 7.68e11}, 1.08e12},
	} {
		if got := c.text(2); !strings.Contains(got, want) {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// A generator that could not send the load says so.
func TestLoadMissed(t *testing.T) {
	r := hops(200e3, 12e3, 48e3)
	trial := record.Trial{Delivery: &record.Delivery{SentBits: 1_800_000_000}, Marks: []string{record.MarkLoadMissed, record.MarkLate}}
	r.Sent, r.Marks = sentOf([]record.Trial{trial, trial})
	r.Load = 900e9
	r.decide()
	var out bytes.Buffer
	testenv.Must(t, Document("ran", []*Result{r}).Text(&out, 80))
	text := strings.Join(strings.Fields(out.String()), " ")
	for _, want := range []string{"Mark “load missed”: 1.8Gbps were sent of 900Gbps", "Mark “late sender”: one packet in a hundred"} {
		if strings.Count(text, want) != 1 {
			t.Errorf("no %q in:\n%s", want, out.String())
		}
	}
}

// Of an interrupted trace the finished rounds count, and only these.
func TestInterruptedTrace(t *testing.T) {
	trial := record.Trial{Delivery: &record.Delivery{Sent: 30, SentBits: 1000}, Duration: time.Second}
	tr := &Trace{
		tracer: &Tracer{Path: &plan.Path{Name: "p"}, Options: Options{Rounds: 20}, points: []point{{}, {}}},
		stages: []stage{{to: 1}}, rounds: 2, plain: []record.Trial{trial, trial}, busy: make([]map[string]Busy, 2), stopped: []string{"r (exited)"},
	}
	for range 3 { // the third without its counterpart
		p := passage{entered: []uint64{30}, passed: []uint64{30}, delays: [][]int64{nil}, rates: []float64{30}}
		for range 30 {
			p.delays[0], p.whole = append(p.delays[0], 1000), append(p.whole, []int64{1000})
		}
		tr.passages, tr.observed = append(tr.passages, p), append(tr.observed, trial)
	}
	tr.cut()
	r, err := tr.Result()
	testenv.Must(t, err)
	if r.Rounds != 2 || r.Packets != 60 {
		t.Errorf("%d rounds, %d packets", r.Rounds, r.Packets)
	}
	var out bytes.Buffer
	testenv.Must(t, Document("ran", []*Result{r}).Text(&out, 0))
	for _, want := range []string{"Interrupted after 2 of 20 rounds.", "Not running: r (exited)."} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in:\n%s", want, out.String())
		}
	}
}

// Functions of the path whose command has ended are named, also if nothing came through.
func TestStopped(t *testing.T) {
	got := stopped([]string{"r", "s", "u"}, []node.FunctionStatus{
		{Name: "a", Phase: node.PhaseExited}, {Name: "r", Phase: node.PhaseExited}, {Name: "s", Phase: node.PhaseRunning}, {Name: "u", Phase: node.PhaseNone},
	})
	if !slices.Equal(got, []string{"r (exited)"}) {
		t.Errorf("%q", got)
	}
	if err := (&Result{Path: "p", Stopped: got}).nothing(); !strings.Contains(err.Error(), "r (exited)") {
		t.Errorf("%v", err)
	}
}

// slow is many packets with the same delay.
func slow(ns int64) []int64 {
	var all []int64
	for range 100 {
		all = append(all, ns)
	}
	return all
}

// A table of figures fits into a terminal of 80 columns, without percentiles that no hop has.
func TestTablesFitATerminal(t *testing.T) {
	r := hops(200e3, 12e3, 48e3)
	for i := range r.Hops {
		r.Hops[i].Delay = []Quantile{{50, Bounded{126e3, 10.2e3, 3.08e6}}, {99, Bounded{126e3, 10.2e3, 3.08e6}}}
		r.Hops[i].Loss = &Loss{20284, 20384, Bounded{0.9, 0.9, 0.97}}
		r.Hops[i].Rate = &Bounded{Value: 1e6}
	}
	r.decide()
	var out bytes.Buffer
	testenv.Must(t, Document("ran", []*Result{r}).Text(&out, 80))
	for _, row := range []string{"HOP P50 P99 OF SLOW", "link n3, until taken 126us [10.2us, 3.08ms] 126us [10.2us, 3.08ms] 200us", "cu 20284 of 20384, ≤ 0.97 1Mbps 0.98 [0.00, 0.00]"} {
		if !slices.ContainsFunc(strings.Split(out.String(), "\n"), func(line string) bool { return strings.Join(strings.Fields(line), " ") == row }) {
			t.Errorf("no line %q in:\n%s", row, out.String())
		}
	}
}

func TestText(t *testing.T) {
	r := hops(200e3, 12e3, 48e3)
	r.Path, r.From, r.To, r.Sampling, r.Rounds, r.Trial, r.Hidden = "dl", "upf.n3", "ru.fh", 4, 5, 1, []string{"ru.fh is a device of the function's own DPDK"}
	r.decide()
	var out bytes.Buffer
	testenv.Must(t, Document("ran", []*Result{r}).Text(&out, 80))
	for _, want := range []string{"Path dl from upf.n3 to ru.fh", "link n3, until taken", "cu adds 212us of 260us", "one of 4 packets was followed", "Not observed: ru.fh"} {
		if !strings.Contains(strings.Join(strings.Fields(out.String()), " "), want) {
			t.Errorf("no %q in:\n%s", want, out.String())
		}
	}
	for _, line := range strings.Split(out.String(), "\n") {
		if len([]rune(line)) > 80 {
			t.Errorf("%d columns: %q", len([]rune(line)), line)
		}
	}
}
