// SPDX-License-Identifier: Apache-2.0

package live

import (
	"context"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/drayage/dray/internal/link/broker"
	"github.com/drayage/dray/internal/link/telemetry/telemetrytest"
	"github.com/drayage/dray/internal/plan"
	"github.com/drayage/dray/internal/result/record"
	"github.com/drayage/dray/internal/result/verdict"
)

// crossed are intervals in both directions, each with 80 probes of those delays.
func crossed(n int, change func(*Crossing)) (all [][]Crossing) {
	for range n {
		var interval []Crossing
		for _, way := range [][2]string{{"a.p0", "b.p0"}, {"b.p0", "a.p0"}} {
			c := Crossing{Link: "ab", From: way[0], To: way[1], Interval: 2 * time.Second, Probes: 80, Sent: 2000}
			for range 80 {
				c.Delays, c.Rounds = append(c.Delays, [3]int64{0, 40_000, 5_000}), append(c.Rounds, 40_000)
			}
			change(&c)
			interval = append(interval, c)
		}
		all = append(all, interval)
	}
	return all
}

func TestTunnelsAreJudged(t *testing.T) {
	planned := requiring(50*time.Microsecond, 1e-3)
	back := func(f func(*Crossing)) func(*Crossing) {
		return func(c *Crossing) {
			if c.From == "b.p0" {
				f(c)
			}
		}
	}
	for _, tt := range []struct {
		name          string
		change        func(*Crossing)
		latency, loss verdict.Word
	}{
		{"good", func(*Crossing) {}, verdict.Met, verdict.Met},
		{"packets lost", back(func(c *Crossing) { c.Missing = 20 }), verdict.Met, verdict.Missed},
		{"more lost than sent", back(func(c *Crossing) { c.Missing = math.MaxUint64 }), verdict.Met, verdict.Missed},
		{"no packets", back(func(c *Crossing) { c.Sent = 0 }), verdict.Met, verdict.NotMeasurable},
		{"probes lost", back(func(c *Crossing) { c.Delays, c.Rounds, c.Lost = c.Delays[:60], nil, 20 }), verdict.Missed, verdict.Met},
		{"all probes lost", back(func(c *Crossing) { c.Delays, c.Rounds, c.Lost = nil, nil, 80 }), verdict.Missed, verdict.Met},
		{"clocks unknown", back(func(c *Crossing) { c.Delays, c.Rounds = nil, nil }), verdict.NotMeasurable, verdict.Met},
		{"nothing known", back(func(c *Crossing) { *c = Crossing{Link: c.Link, From: c.From, To: c.To} }), verdict.NotMeasurable, verdict.NotMeasurable},
		{"absurd delays", back(func(c *Crossing) {
			for i := range c.Delays {
				c.Delays[i] = [3]int64{math.MinInt64, math.MaxInt64, math.MinInt64}
				c.Rounds[i] = math.MinInt64
			}
		}), verdict.NotMeasurable, verdict.Met},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var trials []record.Trial
			for i, interval := range crossed(30, tt.change) {
				for _, c := range interval {
					trials = append(trials, c.Trials(i)...)
				}
			}
			for _, v := range verdict.JudgeProbed(planned, trials) {
				want, judged := map[string]verdict.Word{"latency": tt.latency, "packet_loss_ratio": tt.loss}[v.Requirement]
				if judged && v.Verdict != want {
					t.Errorf("%s is %s, not %s: %s", v.Requirement, v.Verdict, want, v.Reason)
				}
			}
		})
	}
}

// What came shows a rate, in both directions.
func TestRatesOfTunnels(t *testing.T) {
	planned := requiring(time.Second, 0.5)
	const enough = 250_000_000 + 2000*66 // bytes in 2 s are 1 Gbps of payload and all headers
	for bytes, want := range map[uint64]verdict.Word{enough: verdict.Met, enough - 1000: verdict.NotMeasurable} {
		var trials []record.Trial
		for i, interval := range crossed(6, func(c *Crossing) { c.Bytes = bytes }) {
			for _, c := range interval {
				trials = append(trials, c.Trials(i)...)
			}
		}
		for _, v := range verdict.JudgeProbed(planned, trials) {
			if v.Requirement == "min_bitrate" && v.Verdict != want {
				t.Errorf("%d bytes: %+v", bytes, v)
			}
		}
	}
}

func TestACrossingAsAFlow(t *testing.T) {
	c := crossed(1, func(c *Crossing) { c.Missing = 3 })[0][0]
	f := c.Flow()
	if f.Sent != 2000 || f.Received != 1997 || f.Lost != 3 || f.Latency.Count != 80 {
		t.Errorf("%+v", f)
	}
	if low, high := f.Latency.Quantile(0.5); low > 20_000 || high < 20_000 || high > 21_000 {
		t.Errorf("the median is between %v and %v", low, high)
	}
}

// What was measured of one transport says nothing of the next, nor does what the port has counted.
func TestAMovedLinkBeginsANewWindow(t *testing.T) {
	second := uint64(0)
	w := &Watcher{Keep: 60, Source: func(context.Context) ([]Chain, error) {
		second++
		s := telemetrytest.Reported(second, 2000, 0)
		if second > 5 {
			s.Kind = "netdev"
		}
		return []Chain{{telemetrytest.Snapshot(int(second), s), []plan.Link{requiring(time.Second, 0.5)}}}, nil
	}}
	var links []Link
	for range 8 {
		var err error
		if links, err = w.Sample(context.Background()); err != nil {
			t.Fatal(err)
		}
	}
	if sum := links[0].Window[0]; sum.Interval != 2*time.Second || sum.Received != 200_000 {
		t.Errorf("after the move: %+v", sum)
	}
	if links[0].Status.Kind != broker.KindNetdev {
		t.Errorf("kind %s", links[0].Status.Kind)
	}
}

func TestTheMTUOfALink(t *testing.T) {
	planned := requiring(50*time.Microsecond, 1e-3)
	planned.Requires.MTU = 1500
	for name, c := range map[string]struct {
		change func(*Crossing)
		want   verdict.Word
	}{
		"the largest pass":              {func(*Crossing) {}, verdict.Met},
		"some of them pass":             {func(c *Crossing) { c.Lost, c.FullLost = 1, 1 }, verdict.Met},
		"none of them passes":           {func(c *Crossing) { c.Lost, c.FullLost = 2, 2 }, verdict.Missed},
		"smaller ones are lost as well": {func(c *Crossing) { c.Lost, c.FullLost = 10, 2 }, verdict.NotMeasurable},
		"the link has a smaller one":    {func(c *Crossing) { c.MTU = 1400 }, verdict.NotMeasurable},
		"none was sent":                 {func(c *Crossing) { c.Full = 0 }, verdict.NotMeasurable},
	} {
		var trials []record.Trial
		for n, interval := range crossed(5, func(way *Crossing) {
			way.MTU, way.Full = 1500, 2
			c.change(way)
		}) {
			for _, way := range interval {
				trials = append(trials, way.Trials(n)...)
			}
		}
		verdicts := verdict.JudgeProbed(planned, trials)
		i := slices.IndexFunc(verdicts, func(v verdict.Verdict) bool { return v.Requirement == "mtu" })
		if i < 0 || verdicts[i].Verdict != c.want {
			t.Errorf("%s: %+v", name, verdicts)
		}
	}
}
