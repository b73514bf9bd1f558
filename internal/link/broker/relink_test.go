// SPDX-License-Identifier: Apache-2.0

package broker_test

import (
	"context"
	"encoding/binary"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/drayage/dray/internal/host"
	"github.com/drayage/dray/internal/link/broker"
	"github.com/drayage/dray/internal/link/broker/wire"
	"github.com/drayage/dray/test/testenv"
)

// veth makes the ends of a link interfaces, each in a namespace of its own.
func (s *fixture) veth(l *broker.Link) {
	s.t.Helper()
	testenv.Root(s.t)
	l.Kind = broker.KindNetdev
	var ifaces []host.Iface
	for i := range l.Ends {
		ns := host.Netns{Path: filepath.Join(s.dir, "end"+l.Ends[i].Function+".net")}
		testenv.Must(s.t, host.CreateNetns(ns.Path))
		s.t.Cleanup(func() {
			if err := host.Removers()[host.KindNetns](context.Background(), host.NamespaceResource(ns.Path)); err != nil {
				s.t.Error(err)
			}
		})
		testenv.Must(s.t, ns.DisableIPv6())
		l.Ends[i].Netns, l.Ends[i].Interface = ns.Path, "port"
		ifaces = append(ifaces, host.Iface{Netns: ns, Name: "port", MAC: l.Ends[i].MAC, MTU: 1500, Queues: l.Ends[i].Queues})
	}
	testenv.Must(s.t, host.CreateVeth(ifaces[0], ifaces[1]))
	for _, i := range ifaces {
		testenv.Must(s.t, i.Netns.SetUp(i.Name))
	}
	// Until then the kernel drops frames in silence.
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	for _, i := range ifaces {
		testenv.Must(s.t, i.Netns.WaitCarrier(ctx, i.Name))
	}
}

// move relinks, and waits until both ends have followed.
func (s *fixture) move(c *broker.Client, l broker.Link, from, to *peer) {
	s.t.Helper()
	before := s.status(c, l.Name).Generation
	testenv.Must(s.t, c.Relink(context.Background(), l))
	until(s.t, "moved to "+l.Kind, func() bool {
		st := s.status(c, l.Name)
		return st.Kind == l.Kind && st.State == broker.StateActive && st.Generation > before
	})
	to.flows(300)
	want := uint64(wire.KindShm)
	if l.Kind == broker.KindNetdev {
		want = wire.KindNetdev
	}
	until(s.t, "seen by both", func() bool { return from.seen().Kind == want && to.seen().Kind == want })
}

// The link moves from memory to network devices and back under traffic; the
// ends lose nothing and are never down.
func TestRelink(t *testing.T) {
	s := newFixture(t)
	c, _ := s.serve()
	l, from, to := s.pair(c, "f1u")
	wired := l
	wired.Ends = append([]broker.End{}, l.Ends...)
	wired.Kind = broker.KindNetdev
	s.veth(&wired)
	s.move(c, wired, from, to)
	if st := s.status(c, "f1u"); st.Pages != "" || st.LastError != "" {
		t.Errorf("status is %+v", st)
	}
	s.move(c, l, from, to)
	from.end()
	settled(from, to)
	from = s.join(l.Ends[0], "send")
	to.flows(300)
	// Sockets of two generations on one device at once: nothing is duplicated.
	for _, next := range []broker.Link{wired, wired, l, wired} {
		s.move(c, next, from, to)
	}
	if n := from.seen().Rebinds; n != 4 {
		t.Errorf("the sender was rebound %d times, not 4: %+v", n, from.seen())
	}
	from.end()
	if got := to.seen(); got.Wrong != 0 {
		t.Errorf("%d packets were duplicated or damaged: %+v", got.Wrong, got)
	}
}

// A restarted broker gives new sockets to the ends of a netdev link.
func TestNetdevAfterRestart(t *testing.T) {
	s := newFixture(t)
	l := s.link("n3")
	s.veth(&l)
	c, b := s.spawn()
	s.add(c, l)
	to := s.join(l.Ends[1], "recv")
	from := s.join(l.Ends[0], "send")
	to.flows(500)
	b.kill()
	to.flows(500)
	before := to.seen().Generation
	c, _ = s.spawn()
	until(t, "active", func() bool { return s.status(c, "n3").State == broker.StateActive })
	until(t, "rebound", func() bool { return to.seen().Generation > before })
	to.flows(500)
	// The other end of such a link does not notice when one dies.
	generation := to.seen().Generation
	from.kill()
	until(t, "half", func() bool { return s.status(c, "n3").State == broker.StateHalf })
	s.join(l.Ends[0], "send")
	to.flows(500)
	if got := to.seen(); got.Generation != generation || got.Wrong != 0 {
		t.Errorf("when the sender died, the receiver in generation %d saw: %+v", generation, got)
	}
}

func TestMoveKeepsThePorts(t *testing.T) {
	s := newFixture(t)
	c, _ := s.serve()
	ctx := context.Background()
	l := s.link("f1u")
	if err := c.Relink(ctx, l); err == nil || !strings.Contains(err.Error(), "no link") {
		t.Errorf("moving a missing link: %v", err)
	}
	s.add(c, l)
	s.add(c, l) // unchanged: no error
	for name, change := range map[string]func(e *broker.End){
		"MTU":    func(e *broker.End) { e.MTU = 1400 },
		"port":   func(e *broker.End) { e.Port = "other" },
		"socket": func(e *broker.End) { e.Socket += "2" },
		"queues": func(e *broker.End) { e.Queues = 2 },
		"owner":  func(e *broker.End) { e.Owner++ },
	} {
		moved := l
		moved.Ends = append([]broker.End{}, l.Ends...)
		change(&moved.Ends[1])
		if err := c.Relink(ctx, moved); err == nil || !strings.Contains(err.Error(), "cannot change port") {
			t.Errorf("a move changes the %s: %v", name, err)
		}
		if err := c.Add(ctx, moved); err == nil {
			t.Errorf("another %s is added under the same name", name)
		}
	}
}

// Frames of a link with several queues arrive once, at one queue, and never
// return to their sender.
func TestNetdevQueues(t *testing.T) {
	s := newFixture(t)
	l := s.link("n3")
	l.Ends[0].Queues, l.Ends[1].Queues = 2, 2
	s.veth(&l)
	c, _ := s.serve()
	s.add(c, l)
	var sockets [2][]int
	for i := range l.Ends {
		r := s.welcomed(l.Ends[i])
		m, fds := r.expect(wire.TypeOffer)
		if o := m.Body.(*wire.Offer); o.Kind != wire.KindNetdev || o.Queues != 2 || len(fds) != 2 {
			t.Fatalf("offered %+v with %d sockets", o, len(fds))
		}
		sockets[i] = fds
	}
	const frames = 40
	for i := range uint32(frames) {
		frame := make([]byte, 14, 60)
		frame[12], frame[13] = 0x08, 0x00
		ip := []byte{0x45, 0, 0, 46, 0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, byte(i), 10, 0, 0, 1}
		frame = append(append(frame, ip...), binary.BigEndian.AppendUint32(nil, i)...)
		frame = frame[:cap(frame)]
		testenv.Must(t, unix.Send(sockets[0][i%2], frame, 0))
	}
	var got [2]int
	until(t, "all received", func() bool {
		for q, fd := range sockets[1] {
			for buffer := make([]byte, 2048); ; got[q]++ {
				if _, _, err := unix.Recvfrom(fd, buffer, unix.MSG_DONTWAIT); err != nil {
					break
				}
			}
		}
		return got[0]+got[1] >= frames
	})
	if got[0]+got[1] != frames || got[0] == 0 || got[1] == 0 {
		t.Errorf("the queues got %v of %d frames", got, frames)
	}
	time.Sleep(10 * time.Millisecond)
	for _, fd := range sockets[0] {
		if n, _, err := unix.Recvfrom(fd, make([]byte, 2048), unix.MSG_DONTWAIT); err == nil {
			t.Errorf("a frame of %d bytes came back to its sender", n)
		}
	}
}
