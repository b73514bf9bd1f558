// SPDX-License-Identifier: Apache-2.0

package broker_test

import (
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/drayage/dray/internal/link/broker"
	"github.com/drayage/dray/internal/link/broker/wire"
	"github.com/drayage/dray/test/testenv"
)

// TestHoarder keeps the memory of every generation, by descriptor or only by
// mapping. It gets few generations, and the link continues after it releases them.
func TestHoarder(t *testing.T) {
	s, c, l := serveLink(t)
	honest := s.welcomed(l.Ends[1])
	const most = 8
	var kept [][]byte
	for range most {
		hoarder := s.raw(l.Ends[0])
		_, o, memfd := hoarder.offered()
		b, err := unix.Mmap(memfd, 0, int(o.Geometry.Size), unix.PROT_READ, unix.MAP_SHARED)
		testenv.Must(t, err)
		kept = append(kept, b)
		hoarder.hangUp()
		honest.expect(wire.TypeOffer)
		honest.expect(wire.TypeRebind)
		honest.letGo()
	}
	hoarder := s.welcomed(l.Ends[0])
	var st broker.LinkStatus
	until(t, "refused, or one more", func() bool {
		st = s.status(c, "f1u")
		return st.Generation > most || strings.Contains(st.LastError, "earlier generations")
	})
	if st.Generation > most {
		t.Errorf("an end that keeps all memory still gets more: %+v", st)
	}
	for _, b := range kept {
		if err := unix.Munmap(b); err != nil {
			t.Error(err)
		}
	}
	hoarder.expect(wire.TypeOffer)
}

// TestTelemetryHoarder does the same with telemetry memfds. It does not affect
// its peer's port.
func TestTelemetryHoarder(t *testing.T) {
	s, _, l := serveLink(t)
	var kept []int
	for range 8 {
		r := s.raw(l.Ends[0])
		_, fds := r.greet()
		kept, r.fds = append(kept, fds...), nil
		r.hangUp()
	}
	r := s.raw(l.Ends[0])
	r.hello(nil)
	r.refused(unix.ENOMEM)
	s.welcomed(l.Ends[1])
	closeFDs(kept)
	until(t, "welcome", func() bool {
		r := s.raw(l.Ends[0])
		defer r.hangUp()
		r.hello(nil)
		m, _, err := r.receive()
		return err == nil && m.Type == wire.TypeWelcome
	})
}

// TestSocketHoarder keeps the packet sockets of every generation.
func TestSocketHoarder(t *testing.T) {
	s := newFixture(t)
	l := s.link("n3")
	s.veth(&l)
	c, _ := s.serve()
	s.add(c, l)
	var kept []int
	t.Cleanup(func() { closeFDs(kept) })
	for range 8 {
		r := s.welcomed(l.Ends[0])
		_, fds := r.expect(wire.TypeOffer)
		kept = append(kept, fds...)
		r.fds = slices.DeleteFunc(r.fds, func(fd int) bool { return slices.Contains(fds, fd) })
		r.hangUp()
	}
	r := s.welcomed(l.Ends[0])
	until(t, "refused", func() bool { return strings.Contains(s.status(c, "n3").LastError, "still open") })
	peer := s.welcomed(l.Ends[1])
	peer.expect(wire.TypeOffer)
	closeFDs(kept)
	kept = nil
	r.expect(wire.TypeOffer)
}
