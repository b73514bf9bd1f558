// SPDX-License-Identifier: Apache-2.0

package native

import (
	"slices"
	"strings"
	"testing"

	"github.com/drayage/dray/internal/link/broker"
	"github.com/drayage/dray/internal/link/broker/wire"
	"github.com/drayage/dray/internal/link/transport"
	"github.com/drayage/dray/internal/spec/chain"
)

func classesOf(t *testing.T, q chain.Qdisc) (*broker.Classes, int) {
	t.Helper()
	c, slots, err := ClassesOf(&q, 1500)
	if err != nil {
		t.Fatalf("%+v: %v", q, err)
	}
	return c, slots
}

// A qdisc without classes is one class, shaped if it shapes.
func TestOneClass(t *testing.T) {
	marks, no := true, false
	for _, test := range []struct {
		q     chain.Qdisc
		rate  uint64
		burst uint32
		class wire.Class
		slots int
	}{
		{chain.Qdisc{Kind: "pfifo"}, 0, 0, wire.Class{Limit: 512}, 768},
		{chain.Qdisc{Kind: "bfifo", Limit: 2560}, 0, 0, wire.Class{Discipline: wire.DisciplineBFIFO, Limit: 2560}, 320},
		{chain.Qdisc{Kind: "codel", Target: 1e6, ECN: &marks}, 0, 0,
			wire.Class{Discipline: wire.DisciplineCoDel, Flags: wire.ClassECN, Limit: 512, TargetNS: 1e6, IntervalNS: 1e8}, 768},
		{chain.Qdisc{Kind: "fq_codel", ECN: &no}, 0, 0, wire.Class{Discipline: wire.DisciplineFQCoDel, Limit: 512, TargetNS: 5e6, IntervalNS: 1e8}, 768},
		{chain.Qdisc{Kind: "slot", Slot: 500e3, Offset: 1, Clock: chain.ClockRealtime}, 0, 0,
			wire.Class{Discipline: wire.DisciplineSlot, Flags: wire.ClassRealtime, Limit: 512, TargetNS: 500e3, IntervalNS: 1}, 768},
		{chain.Qdisc{Kind: "tbf", Rate: 8e6, Latency: 10e6, Burst: 2000}, 8e6, 2000, wire.Class{Discipline: wire.DisciplineBFIFO, Limit: 12000}, 320},
		{chain.Qdisc{Kind: "htb", Rate: 1e6, Ceil: 1e9}, 1e9, 500000, wire.Class{Limit: 512}, 768},
		{chain.Qdisc{Kind: "hfsc", Rate: 1e9, Child: &chain.Qdisc{Kind: "sfq"}}, 1e9, 500000, wire.Class{Discipline: wire.DisciplineSFQ, Limit: 127}, 384},
	} {
		c, slots := classesOf(t, test.q)
		want := wire.Classes{Classes: 1, Rate: test.rate, Burst: test.burst, Class: [wire.ClassesMax]wire.Class{test.class}}
		if c.Order != want || slots != test.slots || c.Names != nil {
			t.Errorf("%s: %+v with %d slots, want %+v with %d", test.q.Kind, c.Order, slots, want, test.slots)
		}
	}
}

func TestSeveralClasses(t *testing.T) {
	meta := 0
	c, _ := classesOf(t, chain.Qdisc{Kind: "prio", Classes: []chain.Class{
		{Name: "urgent", DSCP: []int{46, 63}, PCP: []int{7}}, {Name: "marked", Meta: &meta}, {Name: "rest"}}})
	if o := c.Order; o.Scheduler != wire.SchedulerStrict || o.Rate != 0 || o.Burst != 0 || !slices.Equal(c.Names, []string{"urgent", "marked", "rest"}) ||
		o.Class[0] != (wire.Class{DSCP: 1<<46 | 1<<63, PCP: 1 << 7, Limit: 256}) || o.Class[1] != (wire.Class{Flags: wire.ClassMeta, Limit: 256}) {
		t.Errorf("prio is %+v", c)
	}
	c, _ = classesOf(t, chain.Qdisc{Kind: "htb", Rate: 1e9, Classes: []chain.Class{
		{Name: "a", DSCP: []int{0}, Rate: 1e6, Ceil: 1e9, Burst: 5000, Priority: 3}, {Name: "b", Rate: 1e6}}})
	if o := c.Order; o.Scheduler != wire.SchedulerHTB || o.Rate != 1e9 || o.Burst != 500000 ||
		o.Class[0] != (wire.Class{DSCP: 1, Priority: 3, Rate: 1e6, Ceil: 1e9, Peak: 5000, Limit: 256}) ||
		o.Class[1] != (wire.Class{Rate: 1e6, Ceil: 1e6, Peak: 3028, Limit: 256}) {
		t.Errorf("htb is %+v", c)
	}
	c, _ = classesOf(t, chain.Qdisc{Kind: "hfsc", Rate: 1e9, Classes: []chain.Class{{Name: "a", Rate: 1e6, Peak: 1e8, PeakTime: 1e6}}})
	if o := c.Order; o.Scheduler != wire.SchedulerHFSC || o.Class[0] != (wire.Class{Rate: 1e6, Peak: 1e8, PeakNS: 1e6, Limit: 256}) {
		t.Errorf("hfsc is %+v", c)
	}
}

// A port's own qdisc replaces the link's, and the link has buffers for the larger.
func TestClassesOfALink(t *testing.T) {
	s := transport.Spec{Link: "l", MTU: 1500, Shape: &chain.Qdisc{Kind: "pfifo", Limit: 100}, Ends: []transport.End{
		{Function: "b", Name: "p", Face: chain.FaceDPDK, Shape: &chain.Qdisc{Kind: "sfq", Limit: 1000}}, {Function: "a", Name: "p", Face: chain.FaceNative}}}
	l := Served(s, broker.KindShm, nil)
	if err := SetClasses(&l, s); err != nil || l.Slots != 1280 || l.Ends[0].Classes.Order.Class[0].Limit != 1000 || l.Ends[1].Classes.Order.Class[0].Limit != 100 {
		t.Errorf("%v: %d slots, %+v", err, l.Slots, l.Ends)
	}
	s.Ends[0].Shape = nil
	l = Served(s, broker.KindShm, nil)
	if err := SetClasses(&l, s); err != nil || l.Slots != 512 {
		t.Errorf("%v: short queues leave %d slots", err, l.Slots)
	}
	s.Shape = nil
	l = Served(s, broker.KindShm, nil)
	if err := SetClasses(&l, s); err != nil || l.Slots != 0 || l.Ends[0].Classes != nil {
		t.Errorf("%v: without a qdisc: %+v", err, l)
	}
	s.Shape = &chain.Qdisc{Kind: "netem"}
	if err := SetClasses(&l, s); err == nil || !strings.Contains(err.Error(), "netem") {
		t.Errorf("netem: %v", err)
	}
}

// What a claim of a pod says has been checked by no decoder.
func TestOrdersThatCannotBe(t *testing.T) {
	nine := make([]chain.Class, 9)
	for name, q := range map[string]chain.Qdisc{
		"at most 8":        {Kind: "prio", Classes: nine},
		"below 0":          {Kind: "prio", Classes: []chain.Class{{Name: "a", DSCP: []int{-1}}}},
		"priority below 0": {Kind: "prio", Classes: []chain.Class{{Name: "a", PCP: []int{-1}}}},
		"twice":            {Kind: "prio", Classes: []chain.Class{{Name: "a", DSCP: []int{1}}, {Name: "a"}}},
		"scheduler":        {Kind: "tbf", Rate: 1e6, Classes: []chain.Class{{Name: "a"}}},
		"discipline":       {Kind: "nonsense"},
		"limit":            {Kind: "pfifo", Limit: -1},
	} {
		if _, _, err := ClassesOf(&q, 1500); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
