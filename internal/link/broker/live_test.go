// SPDX-License-Identifier: Apache-2.0

package broker_test

import (
	"context"
	"os"
	"testing"

	"github.com/drayage/dray/internal/link/broker"
	"github.com/drayage/dray/test/testenv"
)

// pair is a link with traffic from its first end to its second.
func (s *fixture) pair(c *broker.Client, name string) (l broker.Link, from, to *peer) {
	s.t.Helper()
	l = s.link(name)
	s.add(c, l)
	to = s.join(l.Ends[1], "recv")
	from = s.join(l.Ends[0], "send")
	to.flows(1000)
	return l, from, to
}

// settled waits until the receiver has all packets that the sender published.
func settled(from, to *peer) {
	from.t.Helper()
	until(from.t, "all received", func() bool { return to.seen().Stream == from.seen().Stream && to.seen().Count >= from.seen().Count })
	if got := to.seen(); got.Wrong != 0 {
		from.t.Errorf("%d packets were duplicated or damaged: %+v", got.Wrong, got)
	}
}

// ordered fails the test if packets were received out of order.
func ordered(to *peer) {
	to.t.Helper()
	if got := to.seen(); got.Unordered != 0 {
		to.t.Errorf("%d packets were received out of order: %+v", got.Unordered, got)
	}
}

// drained ends the sender, and checks that the receiver has all its packets, in order.
func drained(from, to *peer) {
	from.t.Helper()
	from.end()
	settled(from, to)
	ordered(to)
}

func TestTraffic(t *testing.T) {
	s := newFixture(t)
	c, _ := s.serve()
	l, from, to := s.pair(c, "f1u")
	until(t, "figures reported", func() bool {
		ends := s.status(c, "f1u").Ends
		return ends[0].Generation == 1 && ends[1].Generation == 1 && ends[1].Counters.RxPackets > 1000 && ends[1].Latency.Count > 10 && ends[1].Answers
	})
	st := s.status(c, "f1u")
	if st.State != broker.StateActive || st.Generation != 1 || st.Pages == "" || st.Bytes == 0 || st.Adopted || st.Rebinds != 0 || st.LastError != "" {
		t.Errorf("status is %+v", st)
	}
	for i, p := range []*peer{from, to} {
		e := st.Ends[i]
		if !e.Connected || !e.Active || e.PID != p.Process.Pid || e.Mode != "sleeping" || e.Queues != 1 || e.Generation != 1 || e.Function != l.Ends[i].Function {
			t.Errorf("end %d is %+v", i, e)
		}
	}
	if n := len(st.Ends[1].Violations); n != 0 {
		t.Errorf("violations: %v", st.Ends[1].Violations)
	}
	low, high := st.Ends[1].Latency.Quantile(0.5)
	if low <= 0 || high <= low || high > 60e9 {
		t.Errorf("median latency is %g to %g ns", low, high)
	}
	drained(from, to)
	to.end()
	until(t, "empty", func() bool { return s.status(c, "f1u").State == broker.StateEmpty })
	if got := s.status(c, "f1u"); got.Bytes != 0 || got.Rebinds != 1 {
		t.Errorf("after both left: %+v", got)
	}
}

// On huge pages, with messages and several queues.
func TestTrafficOnHugePages(t *testing.T) {
	testenv.Root(t)
	testenv.HugePages(t, 8)
	s := newFixture(t)
	c, _ := s.serve()
	l := s.link("f1u")
	l.Pages, l.MessageBytes = broker.PagesHuge, 100_000
	l.Ends[0].Queues, l.Ends[1].Queues = 2, 2
	s.add(c, l)
	to, from := s.join(l.Ends[1], "recv"), s.join(l.Ends[0], "send")
	to.flows(1000)
	if got := s.status(c, "f1u"); got.Pages != "huge 2M" || got.Bytes < 4<<20 {
		t.Errorf("status is %+v", got)
	}
	drained(from, to)
}

// Packets published by a killed end are received; its successor continues.
func TestKilledEndHasSuccessor(t *testing.T) {
	s := newFixture(t)
	c, _ := s.serve()
	l, from, to := s.pair(c, "f1u")
	const deaths = 5
	for range deaths {
		from.kill()
		settled(from, to)
		from = s.join(l.Ends[0], "send")
		to.flows(200)
	}
	ordered(to)
	if got := to.seen(); got.Streams != deaths+1 {
		t.Errorf("received from %d senders, not %d", got.Streams, deaths+1)
	}
	generation := to.seen().Generation
	to.kill()
	until(t, "down", func() bool { return from.seen().Generation == 0 })
	to = s.join(l.Ends[1], "recv")
	to.flows(200)
	if got := s.active(c, "f1u"); got.Generation <= uint32(generation) || got.Rebinds != deaths+1 {
		t.Errorf("status is %+v after generation %d", got, generation)
	}
	if to.seen().Wrong != 0 || to.seen().Unordered > 1 { // it starts in the middle of a stream
		t.Errorf("the successor saw %+v", to.seen())
	}
}

// The broker is killed under load: traffic continues. After its restart the
// link is adopted, no packet is lost, and the ends see no new generation.
func TestKilledBrokerAdoptsLinks(t *testing.T) {
	s := newFixture(t)
	c, b := s.spawn()
	_, from, to := s.pair(c, "f1u")
	before := s.status(c, "f1u")
	for range 3 {
		s.active(c, "f1u")
		b.kill()
		until(t, "the broker missed", func() bool { return from.seen().Broker == 0 && to.seen().Broker == 0 })
		to.flows(2000)
		c, b = s.spawn()
		until(t, "adopted", func() bool {
			st := s.status(c, "f1u")
			return st.State == broker.StateActive && from.seen().Broker == 1 && to.seen().Broker == 1
		})
		to.flows(1000)
		after := s.status(c, "f1u")
		if !after.Adopted || after.Generation != before.Generation || after.Rebinds != 0 || after.Bytes != before.Bytes || after.Pages != before.Pages {
			t.Errorf("adopted as %+v, was %+v", after, before)
		}
	}
	if n := from.seen().Rebinds + to.seen().Rebinds; n != 0 || from.seen().Generation != uint64(before.Generation) {
		t.Errorf("the ends saw %d rebinds: %+v, %+v", n, from.seen(), to.seen())
	}
	drained(from, to)
	// An adopted link is watched like any other.
	to.end()
	until(t, "empty", func() bool { return s.status(c, "f1u").State == broker.StateEmpty })
}

// Without the journal there is a new generation with a higher number, and no packet is lost.
func TestLostJournal(t *testing.T) {
	s := newFixture(t)
	c, stop := s.serve()
	l, from, to := s.pair(c, "f1u")
	for range 3 { // so that the number is not 1
		from.kill()
		from = s.join(l.Ends[0], "send")
		to.flows(100)
	}
	before := to.seen().Generation
	stop()
	to.flows(500)
	testenv.Must(t, os.RemoveAll(s.state()))
	c, _ = s.serve()
	s.add(c, l)
	until(t, "rebound", func() bool { return to.seen().Generation > before && from.seen().Generation > before })
	to.flows(500)
	if got := s.status(c, "f1u"); got.Adopted {
		t.Errorf("adopted without a journal: %+v", got)
	}
	drained(from, to)
}

// One end dies while no broker runs. The next broker does not adopt half a link.
func TestEndDiesWithoutBroker(t *testing.T) {
	s := newFixture(t)
	c, b := s.spawn()
	l, from, to := s.pair(c, "f1u")
	s.active(c, "f1u")
	b.kill()
	from.kill()
	settled(from, to)
	until(t, "down", func() bool { return to.seen().Generation == 0 })
	c, _ = s.spawn()
	from = s.join(l.Ends[0], "send")
	to.flows(500)
	if got := s.active(c, "f1u"); got.Adopted || got.Generation < 2 {
		t.Errorf("status is %+v", got)
	}
	drained(from, to)
}

func TestRemove(t *testing.T) {
	s := newFixture(t)
	c, _ := s.serve()
	l, from, to := s.pair(c, "f1u")
	ctx := context.Background()
	for range 2 {
		testenv.Must(t, c.Remove(ctx, "f1u"))
	}
	until(t, "down", func() bool { return from.seen().Generation == 0 && to.seen().Generation == 0 })
	for _, e := range l.Ends {
		if _, err := os.Lstat(e.Socket); err == nil {
			t.Errorf("%s is still there", e.Socket)
		}
	}
	if all, err := c.Status(ctx); err != nil || len(all) != 0 {
		t.Errorf("status is %+v, %v", all, err)
	}
	// The ends still run, and a new link of the same name adopts them.
	s.add(c, l)
	to.flows(200)
}
