// SPDX-License-Identifier: Apache-2.0

package chain

import (
	"strings"
	"testing"
	"time"

	"github.com/drayage/dray/internal/spec/units"
)

func inPort(t *testing.T, q Qdisc) *Qdisc {
	t.Helper()
	made, err := q.InPort(1500)
	if err != nil {
		t.Fatalf("%+v: %v", q, err)
	}
	return made
}

func TestQueuesOfPortsHaveDefaults(t *testing.T) {
	for kind, limit := range map[string]int{"pfifo": 512, "bfifo": 512 * 1514, "sfq": 127, "codel": 512, "fq_codel": 512, "slot": 512} {
		if q := inPort(t, Qdisc{Kind: kind, Slot: 1000}); q.Limit != limit || len(q.Queues()) != 1 {
			t.Errorf("%s has limit %d, not %d", kind, q.Limit, limit)
		}
	}
	if q := inPort(t, Qdisc{Kind: "codel"}); q.Target != DefaultTarget || q.Interval != DefaultInterval || *q.ECN {
		t.Errorf("codel is %+v", q)
	}
	if q := inPort(t, Qdisc{Kind: "fq_codel"}); !*q.ECN {
		t.Error("fq_codel marks nothing, unlike the kernel's")
	}
	q := inPort(t, Qdisc{Kind: "prio", Classes: []Class{{Name: "x"}, {Name: "y", Child: &Qdisc{Kind: "bfifo"}}}})
	if x, y := q.Queues()[0], q.Queues()[1]; x.Kind != "pfifo" || x.Limit != 256 || y.Limit != 256*1514 {
		t.Errorf("classes queue by %+v and %+v", x, y)
	}
}

// A port looks more often than a kernel's timer ticks, so the kernel's buckets would be too large.
func TestBucketsOfPorts(t *testing.T) {
	for rate, burst := range map[units.Bitrate]units.Bytes{1e6: 3028, 10e9: 5000000, 10e12: 4294967295} {
		q := inPort(t, Qdisc{Kind: "htb", Rate: rate, Classes: []Class{{Name: "x", Rate: rate / 2, Ceil: rate}}})
		if q.Burst != burst || q.Classes[0].Burst != burst {
			t.Errorf("at %v the buckets have %d and %d bytes, not %d", rate, q.Burst, q.Classes[0].Burst, burst)
		}
	}
	q := inPort(t, Qdisc{Kind: "tbf", Rate: 8e6, Latency: units.Duration(10 * time.Millisecond), Burst: 5000})
	if child := q.Child; child.Kind != "bfifo" || child.Limit != 15000 {
		t.Errorf("8 Mbit/s for 10 ms and 5000 bytes are %+v", child)
	}
	if q := inPort(t, Qdisc{Kind: "tbf", Rate: 100e9}); q.Slots() != 8192 {
		t.Errorf("a fast token bucket has %d slots", q.Slots())
	}
	own := []Class{{Name: "x", Rate: 1e6}}
	inPort(t, Qdisc{Kind: "htb", Rate: 1e6, Classes: own})
	if own[0].Burst != 0 {
		t.Error("the chain's classes were changed")
	}
}

func TestSlots(t *testing.T) {
	for _, c := range []struct {
		q     Qdisc
		slots int
	}{
		{Qdisc{Kind: "pfifo", Limit: 1}, 320},
		{Qdisc{Kind: "bfifo", Limit: 16385}, 384},
		{Qdisc{Kind: "pfifo", Limit: 7936}, 8192},
	} {
		if got := inPort(t, c.q).Slots(); got != c.slots {
			t.Errorf("%+v needs %d slots, not %d", c.q, got, c.slots)
		}
	}
	eight := Qdisc{Kind: "prio"}
	for range 8 {
		eight.Classes = append(eight.Classes, Class{Child: &Qdisc{Kind: "bfifo"}})
	}
	if got := inPort(t, eight).Slots(); got != 8192 {
		t.Errorf("eight bfifos need %d slots", got)
	}
}

func TestQueuesThatPortsLack(t *testing.T) {
	for want, q := range map[string]Qdisc{
		"no netem":       {Kind: "netem"},
		"above 10Tbps":   {Kind: "tbf", Rate: 11e12},
		"7937 packets":   {Kind: "pfifo", Limit: 7937},
		"no room for a ": {Kind: "bfifo", Limit: 1513},
		"8000 packets i": {Kind: "prio", Classes: []Class{{Child: &Qdisc{Kind: "sfq", Limit: 4000}}, {Child: &Qdisc{Kind: "sfq", Limit: 4000}}}},
	} {
		if made, err := q.InPort(1500); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v is %+v, %v", q, made, err)
		}
	}
}
