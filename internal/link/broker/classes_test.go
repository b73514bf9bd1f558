// SPDX-License-Identifier: Apache-2.0

package broker_test

import (
	"context"
	"encoding/binary"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/drayage/dray/internal/link/broker"
	"github.com/drayage/dray/internal/link/broker/wire"
	"github.com/drayage/dray/test/testenv"
)

// strict are two classes in strict order.
func strict() *broker.Classes {
	c := &broker.Classes{Names: []string{"urgent", "rest"}, Order: wire.Classes{Scheduler: wire.SchedulerStrict, Classes: 2}}
	c.Order.Class[0] = wire.Class{DSCP: 1 << 46, Discipline: wire.DisciplineSlot, Limit: 64, TargetNS: 500e3}
	c.Order.Class[1] = wire.Class{Limit: 256}
	return c
}

// serveClasses runs a broker with the link "f1u", one of whose ports has classes.
func serveClasses(t *testing.T) (*fixture, *broker.Client, broker.Link) {
	t.Helper()
	return newFixture(t).serveClasses()
}

func (s *fixture) serveClasses() (*fixture, *broker.Client, broker.Link) {
	s.t.Helper()
	c, _ := s.serve()
	l := s.link("f1u")
	l.Ends[0].Classes = strict()
	s.add(c, l)
	return s, c, l
}

// greetClasses says HELLO up to CLASSES, which must be the order of its port.
func (r *raw) greetClasses() {
	r.t.Helper()
	if m, _ := r.greet(); m.Body.(*wire.Welcome).Flags&wire.WelcomeClasses == 0 {
		r.t.Errorf("WELCOME announces no CLASSES: %+v", m.Body)
	}
	m, _, err := r.receive()
	testenv.Must(r.t, err)
	if m.Type != wire.TypeClasses || *m.Body.(*wire.Classes) != strict().Order {
		r.t.Fatalf("instead of CLASSES: %+v", m)
	}
}

func (r *raw) classed(code unix.Errno) {
	r.t.Helper()
	r.say(wire.Message{Type: wire.TypeClasses, Body: &wire.Classed{Error: uint32(code)}})
}

func TestClassesFollowWelcome(t *testing.T) {
	s, c, l := serveClasses(t)
	a, b := s.raw(l.Ends[0]), s.raw(l.Ends[1])
	a.greetClasses()
	if m, _ := b.greet(); m.Body.(*wire.Welcome).Flags != 0 {
		t.Errorf("the port without classes gets %+v", m.Body)
	}
	a.classed(0)
	if ends := s.status(c, "f1u").Ends; ends[0].Classes == nil || ends[0].Classes.Reported || ends[0].Classes.Error != "" || ends[1].Classes != nil {
		t.Errorf("before a report: %+v, %+v", ends[0].Classes, ends[1].Classes)
	}
	a.expect(wire.TypeOffer)
	a.classed(0)
	if text := a.refused(unix.EPROTO); text != "not now" {
		t.Errorf("a second answer: %s", text)
	}
}

// The broker shows what a function reports, and whether it is what was ordered.
func TestReportedClassesInTheStatus(t *testing.T) {
	s, c, l := serveClasses(t)
	a := s.raw(l.Ends[0])
	a.greetClasses()
	a.classed(0)
	telemetry := a.fds[0]
	report := func(used wire.Classes) *broker.ClassesStatus {
		t.Helper()
		h := wire.TelemetryHeader{Magic: 0x54415244, Version: wire.Version, Classes: used}
		h.Class[0] = wire.TelemetryClass{Packets: 9, Late: 3, LongestNS: 1000}
		b, err := binary.Append(nil, binary.LittleEndian, h)
		testenv.Must(t, err)
		_, err = unix.Pwrite(telemetry, b, 0)
		testenv.Must(t, err)
		got := s.status(c, "f1u").Ends[0]
		if got.Classes == nil {
			t.Fatalf("no classes: %+v", got)
		}
		return got.Classes
	}
	used := strict().Order
	used.Class[1].Limit = 100
	got := report(used)
	if !got.Reported || !got.AsOrdered || got.Scheduler != "prio" || len(got.Classes) != 2 {
		t.Fatalf("with a lower limit: %+v", got)
	}
	if u := got.Classes[0]; u.Name != "urgent" || u.Discipline != "slot" || u.Sent != 9 || u.Late != 3 || u.LongestNS != 1000 || got.Classes[1].Limit != 100 {
		t.Errorf("classes %+v", got.Classes)
	}
	used.Class[1].Limit = 257
	if got = report(used); got.AsOrdered {
		t.Errorf("with a higher limit: %+v", got)
	}
	used = strict().Order
	used.Class[0].DSCP = 1
	if got = report(used); !got.Reported || got.AsOrdered {
		t.Errorf("with another match: %+v", got)
	}
	used.Classes = 3
	used.Class[2] = used.Class[1]
	if got = report(used); !got.Reported || got.AsOrdered || len(got.Classes) != 2 {
		t.Errorf("with more classes: %+v", got)
	}
	used.Scheduler = 4
	if got = report(used); got.Reported || got.Classes != nil {
		t.Errorf("with an impossible scheduler: %+v", got)
	}
}

// An end of an older library would send past the classes.
func TestEndWithoutClasses(t *testing.T) {
	s, _, l := serveClasses(t)
	a, b := s.raw(l.Ends[0]), s.raw(l.Ends[1])
	for _, r := range []*raw{a, b} {
		r.hello(func(h *wire.Hello) { h.Features &^= wire.FeatureClasses })
	}
	if text := a.refused(unix.EPROTONOSUPPORT); !strings.HasSuffix(text, "newer libdray") {
		t.Errorf("refused: %s", text)
	}
	b.expect(wire.TypeWelcome)
}

func TestClassesThatAnEndCannotHave(t *testing.T) {
	s, c, l := serveClasses(t)
	a := s.raw(l.Ends[0])
	a.greetClasses()
	a.classed(unix.ENOMEM)
	until(t, "in the status", func() bool {
		return strings.Contains(s.status(c, "f1u").Ends[0].Classes.Error, "cannot allocate memory")
	})
	if log := s.log.String(); !strings.Contains(log, "traffic classes") {
		t.Errorf("the log says nothing: %s", log)
	}
}

// An end that does not answer gets no memory, and makes room for another.
func TestClassesWithoutAnAnswer(t *testing.T) {
	t.Parallel()
	s := newFixture(t)
	s.timeouts = broker.Usual
	_, c, l := s.serveClasses()
	a, b := s.raw(l.Ends[0]), s.raw(l.Ends[1])
	a.greetClasses()
	b.greet()
	if got := s.status(c, "f1u"); got.Generation != 0 {
		t.Errorf("a generation before the answer: %+v", got)
	}
	if text := a.refused(unix.ETIMEDOUT); !strings.Contains(text, "CLASSES") {
		t.Errorf("refused: %s", text)
	}
}

// A restarted broker orders the classes again, from its journal.
func TestClassesAfterARestart(t *testing.T) {
	s := newFixture(t)
	c, stop := s.serve()
	l := s.link("f1u")
	l.Ends[0].Classes = strict()
	s.add(c, l)
	stop()
	s.serve()
	s.raw(l.Ends[0]).greetClasses()
}

func TestBadClasses(t *testing.T) {
	s := newFixture(t)
	c, _ := s.serve()
	for want, change := range map[string]func(*broker.End){
		"rate":      func(e *broker.End) { e.Classes.Order.Rate = 7 },
		"names":     func(e *broker.End) { e.Classes.Names = []string{"x"} },
		"one queue": func(e *broker.End) { e.Queues = 2 },
	} {
		l := s.link("f1u")
		l.Ends[0].Classes = strict()
		change(&l.Ends[0])
		if err := c.Add(context.Background(), l); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
}

// slow are the classes of strict, of which what is sent fills the queue.
func slow() *broker.Classes {
	c := strict()
	c.Order.Rate, c.Order.Burst = 8e6, 4000
	return c
}

// queueing is a link whose first end sends more than its classes let pass.
func (s *fixture) queueing(c *broker.Client) (l broker.Link, to *peer) {
	s.t.Helper()
	l = s.link("f1u")
	l.Slots, l.Ends[0].Classes = 1024, slow()
	s.add(c, l)
	to = s.join(l.Ends[1], "recv")
	s.join(l.Ends[0], "queue")
	to.flows(200)
	return l, to
}

// overloaded waits for the second class to be reported as ordered, with packets that wait
// and more than so many that were dropped.
func (s *fixture) overloaded(c *broker.Client, dropped uint64) (rest broker.ClassStatus) {
	s.t.Helper()
	until(s.t, "overloaded", func() bool {
		got := s.status(c, "f1u").Ends[0].Classes
		if got == nil || !got.AsOrdered {
			return false
		}
		rest = got.Classes[1]
		return rest.Queued > 0 && rest.Dropped > dropped
	})
	return rest
}

// A broker is killed while packets wait. The next one orders the same classes; what waits
// is sent meanwhile, and the counters go on.
func TestClassesOutliveABroker(t *testing.T) {
	s := newFixture(t)
	c, first := s.spawn()
	_, to := s.queueing(c)
	before := s.overloaded(c, 100)
	first.kill()
	to.flows(500)
	c, _ = s.spawn()
	after := s.overloaded(c, before.Dropped)
	if after.Sent < before.Sent+500 || after.LongestNS < before.LongestNS {
		t.Errorf("the counters do not go on: %+v, then %+v", before, after)
	}
	if got := s.status(c, "f1u"); !got.Adopted || got.Generation != 1 || got.State != broker.StateActive {
		t.Errorf("the link was not adopted: %+v", got)
	}
	to.flows(200)
	if got := to.seen(); got.Wrong != 0 || got.Generation != 1 {
		t.Errorf("the receiver saw %+v", got)
	}
}

// A link gets other classes, and more memory, under traffic. An end that has answered the
// order only once gets nothing new.
func TestClassesChange(t *testing.T) {
	s := newFixture(t)
	c, _ := s.serve()
	l, to := s.queueing(c)
	s.overloaded(c, 100)
	l.Slots, l.Ends[0].Classes = 2048, slow()
	l.Ends[0].Classes.Order.Rate *= 10
	testenv.Must(t, c.Relink(context.Background(), l))
	until(t, "changed", func() bool {
		got := s.status(c, "f1u")
		used := got.Ends[0].Classes
		return used != nil && used.AsOrdered && used.Rate == l.Ends[0].Classes.Order.Rate && got.Generation == 2 && got.State == broker.StateActive
	})
	to.flows(500)
	if got := to.seen(); got.Wrong != 0 {
		t.Errorf("the receiver saw %+v", got)
	}
}

func TestEachOrderOfClassesIsAnswered(t *testing.T) {
	s, c, l := serveClasses(t)
	a, b := s.raw(l.Ends[0]), s.raw(l.Ends[1])
	a.greetClasses()
	b.greet()
	for limit := range uint32(2) {
		l.Ends[0].Classes = strict()
		l.Ends[0].Classes.Order.Class[1].Limit = 10 + limit
		testenv.Must(t, c.Relink(context.Background(), l))
		if m, _ := a.expect(wire.TypeClasses); m.Body.(*wire.Classes).Class[1].Limit != 10+limit {
			t.Errorf("the order is %+v", m.Body)
		}
	}
	a.classed(0)
	a.classed(0)
	if got := s.status(c, "f1u"); got.Generation != 0 {
		t.Errorf("a generation before the last answer: %+v", got)
	}
	a.classed(0)
	a.expect(wire.TypeOffer)
}

// The status is about the last order: an end that could not follow an earlier one may follow it.
func TestAnEarlierOrderThatFailed(t *testing.T) {
	s, c, l := serveClasses(t)
	a := s.raw(l.Ends[0])
	a.greetClasses()
	l.Ends[0].Classes = slow()
	testenv.Must(t, c.Relink(context.Background(), l))
	a.expect(wire.TypeClasses)
	a.classed(unix.ENOMEM)
	until(t, "failed", func() bool { return s.status(c, "f1u").Ends[0].Classes.Error != "" })
	a.classed(0)
	until(t, "followed", func() bool { return s.status(c, "f1u").Ends[0].Classes.Error == "" })
}

// An end whose link crosses interfaces gets no sockets either before it has answered.
func TestNoSocketsBeforeClasses(t *testing.T) {
	s := newFixture(t)
	c, _ := s.serve()
	l := s.link("f1u")
	l.Ends[0].Classes = strict()
	s.veth(&l)
	s.add(c, l)
	a := s.raw(l.Ends[0])
	a.greetClasses()
	if got := s.status(c, "f1u"); got.Generation != 0 {
		t.Errorf("a generation before the answer: %+v", got)
	}
	a.classed(0)
	a.expect(wire.TypeOffer)
}

// An end cannot do without classes once it has opened its port with them.
func TestNoClassesForAnOpenPort(t *testing.T) {
	s := newFixture(t)
	c, _ := s.serve()
	l, _ := s.queueing(c)
	testenv.Must(t, c.Remove(context.Background(), "f1u"))
	l.Ends[0].Classes = nil
	s.add(c, l)
	// A connection that the port gives up meanwhile is an error too, until it is refused again.
	until(t, "refused", func() bool { return strings.HasSuffix(s.status(c, "f1u").LastError, "restart the function") })
	if got := s.status(c, "f1u"); got.State == broker.StateActive {
		t.Errorf("the status is %+v", got)
	}
}

// A link whose port queues cannot move to where it would not.
func TestMoveAwayFromClasses(t *testing.T) {
	_, c, l := serveClasses(t)
	l.Ends[0].Classes = nil
	if err := c.Relink(context.Background(), l); err == nil || !strings.Contains(err.Error(), "dray down") {
		t.Errorf("moved: %v", err)
	}
}
