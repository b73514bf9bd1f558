// SPDX-License-Identifier: Apache-2.0

package verdict

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/drayage/dray/internal/result/record"
	"github.com/drayage/dray/internal/spec/chain"
	"github.com/drayage/dray/internal/spec/units"
)

// figures is a verdict, or one direction of it, as a program reads it.
type figures struct {
	Required, Measured, Bound map[string]any
	Basis                     string
}

// TestVerdictsCarryNumbers reads the JSON of one verdict of each kind: a program needs
// none of its texts, and every direction has the same fields.
func TestVerdictsCarryNumbers(t *testing.T) {
	const udp1400 = "udp, 1,400-byte payload, 1,446-byte frames, one way"
	ratio := units.Ratio(1e-3)
	framed := func(fill func(*record.Trial)) func(*record.Trial) {
		return func(tr *record.Trial) {
			fill(tr)
			tr.Delivery.FrameBytes = tr.Delivery.DatagramBytes + 46
		}
	}
	tests := []struct {
		requires                  chain.Requires
		trials                    []record.Trial
		required, measured, bound map[string]any
		basis                     string
	}{
		{chain.Requires{Latency: units.Duration(time.Millisecond), Percentile: 90}, both(3, record.QStream, framed(latency(0, samples{1000, 1 << 16}))),
			fields("value", 1e6, "unit", "ns", "relation", "at most", "percentile", 90.0, "text", "≤ 1ms at p90"),
			fields("value", 66559.0, "unit", "ns", "percentile", 90.0, "text", "66.6us one-way latency at p90"),
			fields("value", 66559.0, "unit", "ns", "relation", "at most", "percentile", 90.0, "text", "≤ 66.6us"), udp1400},
		{chain.Requires{Latency: units.Duration(time.Millisecond)}, both(3, record.QStream, framed(latency(1000))),
			fields("value", 1e6, "unit", "ns", "relation", "at most", "percentile", 99.0, "text", "≤ 1ms at p99"),
			fields("value", nil, "unit", "ns", "text", "3000 of 3000 lost"),
			fields("value", nil, "unit", "ns", "text", "lost"), udp1400},
		{chain.Requires{LossRatio: &ratio}, both(3, record.QStream, framed(delivery(1000, 500))),
			fields("value", 1e-3, "unit", "1", "relation", "at most", "text", "≤ 0.001 at 400Mbps"),
			fields("value", 0.5, "unit", "1", "text", "0.5 (1500 of 3000)"), nil, udp1400},
		{needsMin, goodputs(9*gig, 9*gig, 9*gig),
			fields("value", 4e9, "unit", "bit/s", "relation", "at least", "text", "≥ 4Gbps"),
			fields("value", 9e9, "unit", "bit/s", "text", "9Gbps"),
			fields("value", 9e9, "unit", "bit/s", "relation", "at least", "text", "≥ 9Gbps"), "tcp goodput, one stream"},
		{needsRate, both(3, record.QPacketRate, pps(110_000, 60_000)),
			fields("value", 1e5, "unit", "packets/s", "relation", "at least", "text", "≥ 100kpps"),
			fields("value", 6e4, "unit", "packets/s", "text", "60kpps"),
			fields("value", 6e4, "unit", "packets/s", "relation", "at most", "text", "≤ 60kpps"),
			"udp, 18-byte payload, 64-byte frames, one way"},
		{needsMTU, mtuRounds(9000, false, false),
			fields("value", 9000.0, "unit", "bytes", "relation", "at least", "text", "≥ 9000 B"),
			fields("value", 0.0, "unit", "bytes", "text", "passed in 0 of 2 rounds"),
			fields("value", 9000.0, "unit", "bytes", "relation", "below", "text", "< 9000 B"),
			"icmp packets of that size, there and back"},
	}
	for _, test := range tests {
		v := Judge(link(test.requires), test.trials)[0]
		var got figures
		read(t, v, &got)
		if test.bound == nil {
			test.bound = got.Bound
		}
		want := figures{test.required, test.measured, test.bound, test.basis}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", v.Requirement, diff)
		}
		for _, f := range v.Directions {
			var one figures
			read(t, f, &one)
			if diff := cmp.Diff(want, one); diff != "" {
				t.Errorf("%s, %s (-want +got):\n%s", v.Requirement, f.Direction, diff)
			}
		}
	}
}

// TestIntervalsCarryNumbers: an undecided figure is an interval, and one never measured
// has no number.
func TestIntervalsCarryNumbers(t *testing.T) {
	b := Judge(link(needsMin), goodputs(0, 4*gig, 9*gig))[0].Bound
	if b.Value != nil || b.Low == nil || *b.Low != 0 || b.High == nil || *b.High < 9*gig || b.Unit != UnitBitrate {
		t.Errorf("an interval is %+v", b)
	}
	v := Judge(link(needsMin), nil)[0]
	if v.Measured.Value != nil || v.Bound.Value != nil || v.Measured.Text != "–" || *v.Required.Value != 4*gig {
		t.Errorf("without a trial: %+v", v)
	}
}

// TestLiveVerdictsNameTheirBasis: the functions' own packets may have any size.
func TestLiveVerdictsNameTheirBasis(t *testing.T) {
	l := link(chain.Requires{})
	l.live = true
	l.Requires.Latency = units.Duration(time.Millisecond)
	if got := Judge(l, both(3, record.QStream, latency(0, samples{1000, us})))[0].Basis; got != "the functions' own packets, one way" {
		t.Errorf("basis %q", got)
	}
}

func fields(pairs ...any) map[string]any {
	m := map[string]any{}
	for i := 0; i < len(pairs); i += 2 {
		m[pairs[i].(string)] = pairs[i+1]
	}
	return m
}

// read passes a value through JSON.
func read(t *testing.T, from, to any) {
	t.Helper()
	b, err := json.Marshal(from)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(b, to); err != nil {
		t.Fatal(err)
	}
}
