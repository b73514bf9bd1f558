// SPDX-License-Identifier: Apache-2.0

package broker_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/drayage/dray/internal/link/broker"
	"github.com/drayage/dray/internal/link/broker/wire"
	"github.com/drayage/dray/test/testenv"
)

// descriptors is the number of open descriptors of this process.
func descriptors(t testing.TB) int {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	testenv.Must(t, err)
	return len(entries)
}

// settles waits until this process has no more descriptors than before: a
// connection's descriptors close slightly after it.
func settles(t testing.TB, before int) {
	t.Helper()
	for deadline := time.Now().Add(patience); descriptors(t) > before; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			entries, _ := os.ReadDir("/proc/self/fd")
			var all []string
			for _, e := range entries {
				to, _ := os.Readlink("/proc/self/fd/" + e.Name())
				all = append(all, to)
			}
			t.Fatalf("%d descriptors, %d before: %q", descriptors(t), before, all)
		}
	}
}

// healthy takes the port through a handshake: the broker must still serve it
// after the attack.
func (s *fixture) healthy(l broker.Link) {
	s.t.Helper()
	a, b, _, _ := s.joinRaw(l)
	a.hangUp()
	b.hangUp()
}

// memfd is shared memory as an attacker creates it.
func memfd(t testing.TB, size int64, seals int) int {
	t.Helper()
	fd, err := unix.MemfdCreate("hostile", unix.MFD_ALLOW_SEALING|unix.MFD_CLOEXEC)
	if err == nil {
		err = unix.Ftruncate(fd, size)
	}
	if err == nil && seals != 0 {
		_, err = unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, seals)
	}
	testenv.Must(t, err)
	t.Cleanup(func() { unix.Close(fd) })
	return fd
}

func TestRefusals(t *testing.T) {
	s, _, l := serveLink(t)
	file, err := os.Open(os.DevNull)
	testenv.Must(t, err)
	defer file.Close()
	extra := int(file.Fd())
	before := descriptors(t)
	whole := (&raw{port: "f1u"}).helloMessage(nil).Marshal()
	version := append([]byte{}, whole...)
	version[4] = 9
	for _, tc := range []struct {
		name string
		say  func(r *raw)
		code unix.Errno
	}{
		{"nothing but a byte", func(r *raw) { _ = r.send(whole[:1]) }, unix.EPROTO},
		{"a truncated HELLO", func(r *raw) { _ = r.send(whole[:len(whole)-1]) }, unix.EPROTO},
		{"a longer HELLO", func(r *raw) { _ = r.send(append(append([]byte{}, whole...), 0)) }, unix.EPROTO},
		{"more than any message", func(r *raw) { _ = r.send(make([]byte, 100_000)) }, unix.EMSGSIZE},
		{"another version", func(r *raw) { _ = r.send(version) }, unix.EPROTONOSUPPORT},
		{"another port", func(r *raw) { r.port = "other"; r.hello(nil) }, unix.EPROTO},
		{"HELLO with a descriptor", func(r *raw) { r.say(r.helloMessage(nil), extra) }, unix.EPROTO},
		{"HELLO with many", func(r *raw) { r.say(r.helloMessage(nil), extra, extra, extra) }, unix.EPROTO},
		{"READOPT without a memfd", func(r *raw) { r.hello(func(h *wire.Hello) { h.Flags = 1 }) }, unix.EPROTO},
		{"READOPT with two", func(r *raw) { r.say(r.helloMessage(func(h *wire.Hello) { h.Flags = 1 }), extra, extra) }, unix.EPROTO},
		{"MAPPED first", func(r *raw) { r.say(wire.Message{Type: wire.TypeMapped, Generation: 1, Body: &wire.Mapped{}}) }, unix.EPROTO},
		{"ACTIVE first", func(r *raw) { r.say(wire.Message{Type: wire.TypeActive, Generation: 1}) }, unix.EPROTO},
		{"STATS first", func(r *raw) { r.say(wire.Message{Type: wire.TypeStats, Body: &wire.Stats{}}) }, unix.EPROTO},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := s.raw(l.Ends[0])
			r.t = t
			tc.say(r)
			r.refused(tc.code)
			r.hangUp()
		})
	}
	for _, tc := range []struct {
		name string
		m    wire.Message
		fds  []int
	}{
		{"HELLO again", (&raw{port: "f1u"}).helloMessage(nil), nil},
		{"MAPPED of nothing", wire.Message{Type: wire.TypeMapped, Generation: 7, Body: &wire.Mapped{}}, nil},
		{"STATS unasked", wire.Message{Type: wire.TypeStats, Body: &wire.Stats{}}, nil},
		{"ACTIVE with descriptors", wire.Message{Type: wire.TypeActive, Generation: 1}, []int{extra, extra}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r, peer := s.raw(l.Ends[0]), s.raw(l.Ends[1])
			r.t, peer.t = t, t
			r.greet()
			peer.offered()
			r.nextOffer()
			if err := r.send(tc.m.Marshal(), tc.fds...); errors.Is(err, unix.EPERM) && len(tc.fds) > 0 {
				r.hangUp() // the kernel has refused the descriptors
			} else if err != nil {
				t.Fatal(err)
			} else {
				r.refused(unix.EPROTO)
			}
			if m, _ := peer.expect(wire.TypeRebind); m.Body.(*wire.Rebind).Reason != wire.RebindDied {
				t.Errorf("the peer got %+v", m.Body)
			}
			r.hangUp()
			peer.hangUp()
		})
	}
	s.healthy(l)
	settles(t, before+2) // the telemetry of the last two may close slightly later
}

// A hint of a later version is ignored, and its descriptors are dropped.
func TestHint(t *testing.T) {
	s, _, l := serveLink(t)
	before := descriptors(t)
	r := s.raw(l.Ends[0])
	hint := wire.Message{Type: 0x8001}.Marshal()
	testenv.Must(t, r.send(hint, memfd(t, 4096, 0)))
	r.greet()
	testenv.Must(t, r.send(hint))
	if err := r.send(hint, int(os.Stdin.Fd())); err != nil && !errors.Is(err, unix.EPERM) {
		t.Fatal(err)
	}
	peer := s.raw(l.Ends[1])
	peer.offered()
	r.nextOffer()
	// Above a limit, they are a flood.
	for range 1000 {
		if err := r.send(hint); err != nil {
			break
		}
	}
	// The ERROR may be lost: closing with unread messages resets the connection.
	for m, err := (wire.Message{}), error(nil); err == nil && m.Type != wire.TypeError; {
		m, _, err = r.receive()
		if errors.Is(err, unix.EAGAIN) {
			t.Fatal("a flood of hints is tolerated")
		}
	}
	r.hangUp()
	peer.hangUp()
	settles(t, before+1) // the test's own memfd
}

func TestPortIsTaken(t *testing.T) {
	s, c, l := serveLink(t)
	first := s.welcomed(l.Ends[0])
	for range 3 {
		s.raw(l.Ends[0]).refused(unix.EBUSY)
	}
	if got := s.status(c, "f1u").Ends[0]; got.Refused != 3 || !got.Connected || got.PID != os.Getpid() {
		t.Errorf("status is %+v", got)
	}
	first.hangUp()
	// A connection right after a death finds the port free.
	second := s.welcomed(l.Ends[0])
	// Two silent connections: the first one to speak gets the port.
	second.hangUp()
	third, fourth := s.raw(l.Ends[0]), s.raw(l.Ends[0])
	fourth.greet()
	third.hello(nil)
	third.refused(unix.EBUSY)
}

// tooLate is longer than a busy machine keeps the prompt end of a test from running.
const tooLate = 8 * time.Second

// Each timeout ends in ERROR for the late end, and in REBIND for the other.
func TestTimeouts(t *testing.T) {
	t.Run("HELLO", func(t *testing.T) {
		t.Parallel()
		s, _, l := serveLinkWithin(t, broker.Usual)
		s.raw(l.Ends[0]).refused(unix.ETIMEDOUT)
	})
	t.Run("MAPPED", testLateMapped)
	t.Run("ACTIVE", testLateActive)
}

func testLateMapped(t *testing.T) {
	t.Parallel()
	s, _, l := serveLinkWithin(t, broker.Patient.Mapped(tooLate))
	late, prompt := s.raw(l.Ends[0]), s.raw(l.Ends[1])
	late.greet()
	generation, _, fd := prompt.offered()
	late.nextOffer()
	prompt.mapped(generation, fd)
	late.refused(unix.ETIMEDOUT)
	if m, _ := prompt.expect(wire.TypeRebind); m.Generation != generation || m.Body.(*wire.Rebind).Next != wire.KindNone {
		t.Errorf("REBIND is %+v", m)
	}
	late.hangUp()
	if next, _, _ := s.raw(l.Ends[0]).offered(); next <= generation {
		t.Errorf("generation %d follows %d", next, generation)
	}
}

func testLateActive(t *testing.T) {
	t.Parallel()
	s, c, l := serveLinkWithin(t, broker.Patient.Active(tooLate))
	late, prompt := s.welcomed(l.Ends[0]), s.welcomed(l.Ends[1])
	generation, _, fd := late.nextOffer()
	prompt.nextOffer()
	late.mapped(generation, fd)
	prompt.mapped(generation, fd)
	late.expect(wire.TypeSealed)
	prompt.expect(wire.TypeSealed)
	prompt.active(generation)
	late.refused(unix.ETIMEDOUT)
	prompt.expect(wire.TypeRebind)
	if got := s.status(c, "f1u"); got.State != broker.StateHalf || !strings.Contains(got.LastError, "ACTIVE") || got.Ends[1].Refused != 0 {
		t.Errorf("status is %+v", got)
	}
}

// An end leaves at each step of the handshake: its peer is notified, and gets
// the next generation with the next end.
func TestEndLeavesAtEachStep(t *testing.T) {
	s, _, l := serveLink(t)
	before := descriptors(t)
	stays := s.welcomed(l.Ends[1])
	for step := range 6 {
		goes := s.raw(l.Ends[0])
		generation := goes.advance(stays, step)
		goes.hangUp()
		if generation == 0 {
			continue
		}
		// Skip messages about generations that this end never saw.
		for rebound := false; !rebound; {
			m, _, err := stays.receive()
			if err != nil {
				t.Fatalf("step %d: %v", step, err)
			}
			rebound = m.Type == wire.TypeRebind && m.Generation == generation
			if m.Type == wire.TypeOffer && m.Generation > generation {
				t.Errorf("step %d: generation %d is offered to a single end", step, m.Generation)
			}
		}
	}
	stays.hangUp()
	s.healthy(l)
	settles(t, before+2)
}

// advance takes that many handshake steps with a peer that has had WELCOME. It
// returns the generation it learned, or 0.
func (r *raw) advance(peer *raw, steps int) (generation uint32) {
	r.t.Helper()
	if steps == 0 {
		return 0
	}
	r.greet()
	if steps == 1 {
		return 0
	}
	generation, _, fd := r.nextOffer()
	if steps == 2 {
		return generation
	}
	r.mapped(generation, fd)
	for offered := false; !offered; {
		m, _, err := peer.receive()
		testenv.Must(r.t, err)
		offered = m.Type == wire.TypeOffer && m.Generation == generation
	}
	peer.mapped(generation, fd)
	if steps > 3 {
		r.expect(wire.TypeSealed)
	}
	if steps > 4 {
		r.active(generation)
	}
	return generation
}

// An end that does not read loses its connection, and costs its peer nothing.
func TestNobodyReads(t *testing.T) {
	s, c, l := serveLinkWithin(t, broker.Patient.Unread(time.Second))
	healthy := s.link("n3")
	s.add(c, healthy)
	deaf := s.raw(l.Ends[0])
	deaf.hello(nil)
	// Each new peer queues an OFFER and a REBIND, until the OFFERs hold too much memory.
	until(t, "dropped", func() bool {
		r := s.welcomed(l.Ends[1])
		r.wait = 100 * time.Millisecond
		_, _, _ = r.receive() // OFFER; nothing, once the other is dropped
		r.hangUp()
		return !s.status(c, "f1u").Ends[0].Connected
	})
	within(t, patience, "another link's handshake", func() { s.healthy(healthy) })
	deaf.hangUp()
	s.healthy(l)
}

// flood connects and disconnects, thousands of times, until it is stopped.
func flood(path string, stop chan struct{}) int {
	for n := 0; ; n++ {
		if n > 3000 {
			select {
			case <-stop:
				return n
			default:
			}
		}
		fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
		if err != nil {
			continue
		}
		_ = unix.Connect(fd, &unix.SockaddrUnix{Name: path}) // EAGAIN: the kernel's queue is full
		unix.Close(fd)
	}
}

// Thousands of connections: the port serves a few at a time, other links are
// unaffected, and nothing is left.
func TestFlood(t *testing.T) {
	s := newFixture(t)
	c, _ := s.serve()
	l, healthy := s.link("f1u"), s.link("n3")
	s.add(c, l)
	s.add(c, healthy)
	before := descriptors(t)
	stop, flooded := make(chan struct{}), make(chan int)
	go func() { flooded <- flood(l.Ends[0].Socket, stop) }()
	for range 20 {
		s.healthy(healthy)
	}
	close(stop)
	t.Logf("%d connections were tried", <-flooded)
	settles(t, before+40)
	// Silent connections use up the slots of their own port only.
	var idle []int
	for range 100 {
		fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
		testenv.Must(t, err)
		_ = unix.Connect(fd, &unix.SockaddrUnix{Name: l.Ends[0].Socket})
		idle = append(idle, fd)
	}
	s.healthy(healthy)
	for _, fd := range idle {
		unix.Close(fd)
	}
	within(t, patience, "the flooded port", func() { s.healthy(l) })
	settles(t, before+2)
}

// Files presented as the memory of a live link that are something else.
func TestFalseReadopt(t *testing.T) {
	s := newFixture(t)
	c, stop := s.serve()
	l := s.link("f1u")
	s.add(c, l)
	a, b, generation, memory := s.joinRaw(l)
	until(t, "active", func() bool { return s.status(c, "f1u").State == broker.StateActive })
	memory, err := unix.FcntlInt(uintptr(memory), unix.F_DUPFD_CLOEXEC, 0)
	testenv.Must(t, err)
	defer unix.Close(memory)
	var st unix.Stat_t
	testenv.Must(t, unix.Fstat(memory, &st))
	file, err := os.Create(filepath.Join(s.dir, "file"))
	testenv.Must(t, err)
	defer file.Close()
	stop()
	a.hangUp()
	b.hangUp()
	const all = unix.F_SEAL_SHRINK | unix.F_SEAL_GROW | unix.F_SEAL_FUTURE_WRITE | unix.F_SEAL_SEAL
	readopt := func(r *raw, generation uint32, fd int) {
		m := r.helloMessage(func(h *wire.Hello) { h.Flags = wire.HelloReadopt })
		m.Generation = generation
		r.say(m, fd)
	}
	for name, fd := range map[string]int{
		"other memory":    memfd(t, st.Size, all),
		"another size":    memfd(t, st.Size+4096, all),
		"without seals":   memfd(t, st.Size, 0),
		"a file":          int(file.Fd()),
		"a closed memory": memfd(t, 0, all),
	} {
		c, stop := s.serve()
		liar, honest := s.raw(l.Ends[0]), s.raw(l.Ends[1])
		readopt(honest, generation, memory)
		readopt(liar, generation, fd)
		for _, r := range []*raw{liar, honest} {
			if m, _ := r.expect(wire.TypeWelcome); m.Body.(*wire.Welcome).Flags != 0 {
				t.Errorf("%s is adopted", name)
			}
		}
		next, _, _ := honest.nextOffer()
		if got := s.status(c, "f1u"); next <= generation || got.Adopted {
			t.Errorf("%s: generation %d follows %d: %+v", name, next, generation, got)
		}
		stop()
		liar.hangUp()
		honest.hangUp()
	}
	// The real memory can still be adopted: none of those generations went live.
	_, stop = s.serve()
	a, b = s.raw(l.Ends[0]), s.raw(l.Ends[1])
	readopt(a, generation, memory)
	readopt(b, generation, memory)
	for _, r := range []*raw{a, b} {
		if m, _ := r.expect(wire.TypeWelcome); m.Body.(*wire.Welcome).Flags != wire.WelcomeReadopted || m.Generation != generation {
			t.Errorf("the real memory is not adopted: %+v", m)
		}
	}
	stop()
	// No end can use up the generation numbers.
	c, _ = s.serve()
	liar := s.raw(l.Ends[0])
	readopt(liar, 1<<32-1, memory)
	liar.expect(wire.TypeWelcome)
	if got := s.status(c, "f1u"); got.Generation > 1000 {
		t.Errorf("the broker continues from generation %d", got.Generation)
	}
}
