// SPDX-License-Identifier: Apache-2.0

package verdict

import (
	"testing"
	"time"

	"github.com/drayage/dray/internal/result/record"
	"github.com/drayage/dray/internal/spec/chain"
)

// exactly is a histogram of n equal values.
func exactly(n int64, d time.Duration) record.Histogram {
	h, err := record.FromLogLinear(10, []int64{record.LogLinearLowest(int64(d), 10)}, []int64{n})
	if err != nil {
		panic(err)
	}
	return h
}

// onTwoClocks is 2,000 delays that are at least and at most that, and half of the round trips.
func onTwoClocks(least, most, half time.Duration) func(*record.Trial) {
	return func(t *record.Trial) {
		t.OneWay = &record.OneWay{Latency: exactly(2000, least), Clocks: &record.TwoClocks{
			Latest: exactly(2000, most), Above: exactly(2000, least), Halves: exactly(2000, half)}}
		t.Delivery = &record.Delivery{Sent: 2000, Received: 2000}
	}
}

// probed is the link without a load.
func probed(requires chain.Requires) Link {
	l := link(requires)
	l.Load, l.live, l.probed = 0, true, true
	return l
}

// A limit of 1.5 ms is met only if the most that delays may be is within, and missed only if the least is
// beyond, or if half of the round trip is.
func TestTwoClocks(t *testing.T) {
	for _, c := range []struct {
		name              string
		least, most, half time.Duration
		want              Word
		reason, needs     string
		measured, bound   string
	}{
		{"within", 100 * us, 900 * us, 500 * us, Met, "stays within", "", "500us ± 400us one-way latency at p99", "≤ 900us"},
		{"beyond", 1700 * us, 2500 * us, 1400 * us, Missed, "exceeds 1.5ms for more than", "", "2.1ms ± 400us one-way latency at p99", "≥ 1.7ms"},
		{"between", 0, 2600 * us, 1300 * us, NotMeasurable, "the clocks of the two nodes are not known well enough", "a limit of 2.6ms", "1.3ms ± 1.3ms one-way latency at p99", "≤ 2.6ms"},
		{"round", 0, 3600 * us, 1800 * us, Missed, "half of the round trip exceeds 1.5ms", "", "1.8ms ± 1.8ms one-way latency at p99", "≥ 1.8ms"},
	} {
		t.Run(c.name, func(t *testing.T) {
			v := judgeOne(t, probed(needsLatency), both(3, record.QProbe, onTwoClocks(c.least, c.most, c.half)), c.want, c.reason, c.needs)
			if v.Measured.Text != c.measured || v.Bound.Text != c.bound {
				t.Errorf("measured %q, bound %q", v.Measured.Text, v.Bound.Text)
			}
			if v.Measured.Value == nil {
				t.Error("the figure has no value")
			}
		})
	}
}

// Variation needs no common clock.
func TestVariationOfTwoClocks(t *testing.T) {
	needs := chain.Requires{PDV: needsLatency.Latency, Percentile: 99}
	v := judgeOne(t, probed(needs), both(3, record.QProbe, onTwoClocks(200*us, time.Second, time.Second)), Met, "stays within", "")
	if v.Measured.Text != "200us one-way variation at p99" {
		t.Errorf("measured %q", v.Measured.Text)
	}
	judgeOne(t, probed(needs), both(3, record.QProbe, onTwoClocks(1700*us, time.Second, time.Second)), Missed, "exceeds", "")
}

// A median is in one of two directions: half of the round trips say nothing of it.
func TestRoundTripsDecideNoMedian(t *testing.T) {
	needs := chain.Requires{Latency: needsLatency.Latency, Percentile: 50}
	judgeOne(t, probed(needs), both(3, record.QProbe, onTwoClocks(0, 3600*us, 1800*us)), NotMeasurable, "clocks", "")
}
