// SPDX-License-Identifier: Apache-2.0

package trace

import (
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/drayage/dray/internal/plan"
	"github.com/drayage/dray/internal/spec/chain"
)

// seen is a view of packets of stream 1, each with its number and its time.
func seen(pairs ...int64) *view {
	v := &view{}
	for i := 0; i < len(pairs); i += 2 {
		v.sightings = append(v.sightings, sighting{tag{1, uint64(pairs[i]), pairs[i+1] - 1000}, pairs[i+1]})
	}
	return v
}

// sent is a stream of four packets in 4 µs, all of which are followed.
var sent = stream{keep: 1, packets: 4, span: 4 * time.Microsecond}

func TestMatch(t *testing.T) {
	// Packet 2 is lost in the second stage, 3 is doubled, and 0 came before the last tap began.
	by := []*view{seen(0, 90, 1, 100, 2, 200, 3, 300), seen(0, 95, 1, 110, 2, 220, 3, 330, 3, 390), seen(1, 111, 3, 331)}
	by[1].sightings = append(by[1].sightings, sighting{tag{2, 1, 0}, 50}) // another stream
	p := match(by, 0, sent)
	if !slices.Equal(p.entered, []uint64{3, 3}) || !slices.Equal(p.passed, []uint64{3, 2}) {
		t.Errorf("entered %v, passed %v", p.entered, p.passed)
	}
	for _, delays := range p.delays {
		slices.Sort(delays)
	}
	if !reflect.DeepEqual(p.delays, [][]int64{{10, 20, 30}, {1, 1}}) || len(p.whole) != 2 {
		t.Errorf("delays %v, whole %v", p.delays, p.whole)
	}
	if !slices.Equal(p.rates, []float64{1e6, 1e6 * 2 / 3}) {
		t.Errorf("rates %v", p.rates)
	}
}

// A sender that lost its CPU catches up: sightings are closer than the packets were offered. The
// rate of what is followed is still that of all packets, for the time of the trial.
func TestRateOfAStreamThatBeginsLate(t *testing.T) {
	sent := stream{keep: 4, packets: 4000, span: time.Second}
	var pairs []int64
	for number := range int64(4000) {
		if number >= 40 && sent.keep.takes(1, uint64(number)) {
			pairs = append(pairs, number, 100e6+number*200e3)
		}
	}
	p := match([]*view{seen(pairs...), seen(pairs[:len(pairs)/4*2]...)}, 0, sent)
	if got := p.rates[0]; got < 1950 || got > 2050 { // half of them came
		t.Errorf("%v packets per second", got)
	}
}

// A tap that missed packets cannot tell which were lost, but how long the others took.
func TestMatchWithMissedPackets(t *testing.T) {
	by := []*view{seen(1, 100, 2, 200), seen(1, 110)}
	by[1].missed = 1
	if p := match(by, 0, sent); p.entered[0] != 0 || p.passed[0] != 1 || p.rates[0] != 0 {
		t.Errorf("entered %v, passed %v, rates %v", p.entered, p.passed, p.rates)
	}
}

// Without a tap at the first port, its sender's stamps count: here sent 1000 ns before the first
// sighting, on a clock 400 ns behind.
func TestMatchFromTheSender(t *testing.T) {
	last := seen(1, 5007)
	last.sightings[0].sent = 4000 // a packet has one stamp
	p := match([]*view{nil, seen(1, 5000), last}, 400, sent)
	if !reflect.DeepEqual(p.delays, [][]int64{{600}, {7}}) || p.entered[0] != 0 || p.entered[1] != 1 {
		t.Errorf("delays %v, entered %v", p.delays, p.entered)
	}
}

func TestMatchOfNothing(t *testing.T) {
	p := match([]*view{seen(), seen(), seen()}, 0, sent)
	if len(p.whole) != 0 || p.rates[0] != 0 {
		t.Errorf("%+v", p)
	}
}

func TestShares(t *testing.T) {
	whole := [][]int64{{1000, 10}}
	for range 99 {
		whole = append(whole, []int64{1, 200})
	}
	means, sum := shares(whole, 1)
	if sum != 1010 || !slices.Equal(means, []float64{1000, 10}) {
		t.Errorf("%v of %v", means, sum)
	}
}

// The slowest packets are 1 %, but enough to mean something.
func TestSlowest(t *testing.T) {
	for packets, want := range map[int]int{0: 0, 2: 0, 19: 0, 20: 10, 425: 10, 1000: 10, 1001: 11, 50_000: 500} {
		if got := slowest(packets); got != want {
			t.Errorf("of %d packets %d are slow, want %d", packets, got, want)
		}
	}
}

// Ports at which nothing can be seen join the links and functions around them.
func TestStages(t *testing.T) {
	port := func(function string, sent bool, why string) point {
		return point{end: plan.End{Function: function}, link: "l" + function, sent: sent, why: why}
	}
	all := []point{port("a", true, "x"), port("b", false, ""), port("b", true, ""), port("c", false, "x"), port("c", true, ""), port("d", false, "x")}
	var names []string
	for _, s := range stages(all) {
		var parts []string
		for _, p := range s.parts {
			parts = append(parts, p.name)
		}
		names = append(names, strings.Join(parts, "+"))
	}
	if want := []string{"la", "b", "lb+c"}; !slices.Equal(names, want) {
		t.Errorf("%q, want %q", names, want)
	}
}

func TestPointsInBothDirections(t *testing.T) {
	p := &plan.Plan{Links: []plan.Link{
		{Name: "ab", Ends: []plan.End{{Function: "a", Port: "x"}, {Function: "b", Port: "x"}}},
		{Name: "bc", Ends: []plan.End{{Function: "b", Port: "y", Face: chain.FaceDPDK}, {Function: "c", Port: "y"}}},
	}}
	path := &plan.Path{Steps: []chain.Step{
		{Link: "ab", Out: chain.End{Function: "a", Port: "x"}, In: chain.End{Function: "b", Port: "x"}},
		{Link: "bc", Out: chain.End{Function: "b", Port: "y"}, In: chain.End{Function: "c", Port: "y"}},
	}}
	text := func(back bool) (all []string) {
		for _, q := range points(p, path, back) {
			way := "into "
			if q.sent {
				way = "out of "
			}
			all = append(all, way+q.end.String())
		}
		return all
	}
	if got, want := text(false), []string{"out of a.x", "into b.x", "out of b.y", "into c.y"}; !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
	if got, want := text(true), []string{"out of c.y", "into b.y", "out of b.x", "into a.x"}; !slices.Equal(got, want) {
		t.Errorf("back: %q", got)
	}
	if points(p, path, false)[2].why == "" {
		t.Error("a device of DPDK is observed")
	}
}
