// SPDX-License-Identifier: Apache-2.0

package broker_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/drayage/dray/internal/broker"
	"github.com/drayage/dray/internal/broker/wire"
)

// descriptors counts those of this process.
func descriptors(t testing.TB) int {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(entries)
}

// settles waits until this process has no more descriptors than before: what a
// connection held goes a little after it.
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
			t.Fatalf("%d descriptors, and before there were %d: %q", descriptors(t), before, all)
		}
	}
}

// healthy takes the port through a handshake: whatever was done to the broker,
// it serves on.
func (s *site) healthy(l broker.Link) {
	s.t.Helper()
	a, b, _, _ := s.joinRaw(l)
	a.hangUp()
	b.hangUp()
}

// memfd is shared memory as an attacker makes it.
func memfd(t testing.TB, size int64, seals int) int {
	t.Helper()
	fd, err := unix.MemfdCreate("hostile", unix.MFD_ALLOW_SEALING|unix.MFD_CLOEXEC)
	if err == nil {
		err = unix.Ftruncate(fd, size)
	}
	if err == nil && seals != 0 {
		_, err = unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, seals)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Close(fd) })
	return fd
}

func TestRefusals(t *testing.T) {
	s := newSite(t)
	c, _ := s.serve()
	l := s.link("f1u")
	s.add(c, l)
	file, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
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
			r.hello(nil)
			r.expect(wire.TypeWelcome)
			peer.offered()
			r.nextOffer()
			r.say(tc.m, tc.fds...)
			r.refused(unix.EPROTO)
			if m, _ := peer.expect(wire.TypeRebind); m.Body.(*wire.Rebind).Reason != wire.RebindDied {
				t.Errorf("the peer is told %+v", m.Body)
			}
			r.hangUp()
			peer.hangUp()
		})
	}
	s.healthy(l)
	settles(t, before+2) // the telemetry of the last two may go a little later
}

// A hint of a later version is ignored, and what comes with it is dropped.
func TestHint(t *testing.T) {
	s := newSite(t)
	c, _ := s.serve()
	l := s.link("f1u")
	s.add(c, l)
	before := descriptors(t)
	r := s.raw(l.Ends[0])
	hint := wire.Message{Type: 0x8001}.Marshal()
	if err := r.send(hint, memfd(t, 4096, 0)); err != nil {
		t.Fatal(err)
	}
	r.hello(nil)
	r.expect(wire.TypeWelcome)
	if err := errors.Join(r.send(hint), r.send(hint, int(os.Stdin.Fd()))); err != nil {
		t.Fatal(err)
	}
	peer := s.raw(l.Ends[1])
	peer.offered()
	r.nextOffer()
	// Beyond some, they are a flood.
	for range 1000 {
		if err := r.send(hint); err != nil {
			break
		}
	}
	r.refused(unix.EPROTO)
	r.hangUp()
	peer.hangUp()
	settles(t, before+1) // the test's own memfd
}

func TestPortIsTaken(t *testing.T) {
	s := newSite(t)
	c, _ := s.serve()
	l := s.link("f1u")
	s.add(c, l)
	first := s.raw(l.Ends[0])
	first.hello(nil)
	first.expect(wire.TypeWelcome)
	for range 3 {
		s.raw(l.Ends[0]).refused(unix.EBUSY)
	}
	if got := s.status(c, "f1u").Ends[0]; got.Refused != 3 || !got.Connected || got.PID != os.Getpid() {
		t.Errorf("status is %+v", got)
	}
	first.hangUp()
	// Who comes right after a death finds the port free.
	second := s.raw(l.Ends[0])
	second.hello(nil)
	second.expect(wire.TypeWelcome)
	// Two that have said nothing yet: the first to speak has it.
	second.hangUp()
	third, fourth := s.raw(l.Ends[0]), s.raw(l.Ends[0])
	fourth.hello(nil)
	fourth.expect(wire.TypeWelcome)
	third.hello(nil)
	third.refused(unix.EBUSY)
}

// Each time-out ends in ERROR for who is late, and in REBIND for who is not.
func TestTimeouts(t *testing.T) {
	s := newSite(t)
	c, _ := s.serve()
	l := s.link("f1u")
	s.add(c, l)
	silent := s.raw(l.Ends[0])
	silent.refused(unix.ETIMEDOUT)

	late, prompt := s.raw(l.Ends[0]), s.raw(l.Ends[1])
	late.hello(nil)
	late.expect(wire.TypeWelcome)
	generation, _, fd := prompt.offered()
	late.nextOffer()
	prompt.mapped(generation, fd)
	late.refused(unix.ETIMEDOUT)
	if m, _ := prompt.expect(wire.TypeRebind); m.Generation != generation || m.Body.(*wire.Rebind).Next != wire.KindNone {
		t.Errorf("REBIND is %+v", m)
	}
	late.hangUp()

	late = s.raw(l.Ends[0])
	next, _, fd := late.offered()
	if next <= generation {
		t.Errorf("generation %d follows %d", next, generation)
	}
	prompt.nextOffer()
	late.mapped(next, fd)
	prompt.mapped(next, fd)
	late.expect(wire.TypeSealed)
	prompt.expect(wire.TypeSealed)
	prompt.active(next)
	late.refused(unix.ETIMEDOUT)
	prompt.expect(wire.TypeRebind)
	if got := s.status(c, "f1u"); got.State != broker.StateHalf || !strings.Contains(got.LastError, "ACTIVE") || got.Ends[1].Refused != 0 {
		t.Errorf("status is %+v", got)
	}
}

// An end leaves at each step of the handshake: the other is told, and gets the
// next generation with whoever comes.
func TestEndLeavesAtEachStep(t *testing.T) {
	s := newSite(t)
	c, _ := s.serve()
	l := s.link("f1u")
	s.add(c, l)
	before := descriptors(t)
	stays := s.raw(l.Ends[1])
	stays.hello(nil)
	stays.expect(wire.TypeWelcome)
	for step := range 6 {
		goes := s.raw(l.Ends[0])
		generation := goes.advance(stays, step)
		goes.hangUp()
		if generation == 0 {
			continue
		}
		// What it was told of generations that this end never saw is skipped.
		for told := false; !told; {
			m, _, err := stays.receive()
			if err != nil {
				t.Fatalf("step %d: %v", step, err)
			}
			told = m.Type == wire.TypeRebind && m.Generation == generation
			if m.Type == wire.TypeOffer && m.Generation > generation {
				t.Errorf("step %d: generation %d is offered while there is one end", step, m.Generation)
			}
		}
	}
	stays.hangUp()
	s.healthy(l)
	settles(t, before+2)
}

// advance takes so many steps of a handshake with a peer that has had WELCOME;
// it returns the generation that it got to know, or 0.
func (r *raw) advance(peer *raw, steps int) (generation uint32) {
	r.t.Helper()
	if steps == 0 {
		return 0
	}
	r.hello(nil)
	r.expect(wire.TypeWelcome)
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
		if err != nil {
			r.t.Fatal(err)
		}
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

// Who does not read loses its connection, and costs the other nothing.
func TestNobodyReads(t *testing.T) {
	s := newSite(t)
	c, _ := s.serve()
	l, healthy := s.link("f1u"), s.link("n3")
	s.add(c, l)
	s.add(c, healthy)
	deaf := s.raw(l.Ends[0])
	deaf.hello(nil)
	// Each peer that comes and goes is an OFFER and a REBIND to it, until its queue is full.
	until(t, "dropped", func() bool {
		r := s.raw(l.Ends[1])
		r.hello(nil)
		r.expect(wire.TypeWelcome)
		_, _, _ = r.receive() // OFFER, or the end of the connection
		r.hangUp()
		return !s.status(c, "f1u").Ends[0].Connected
	})
	within(t, patience, "another link's handshake", func() { s.healthy(healthy) })
	deaf.hangUp()
	s.healthy(l)
}

// flood connects and leaves, until it did so thousands of times and is stopped.
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

// Thousands of connections: the port serves a few at a time, other links do not
// notice, and nothing stays.
func TestFlood(t *testing.T) {
	s := newSite(t)
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
	if n := descriptors(t) - before; n > 40 {
		t.Errorf("%d descriptors more during a flood", n)
	}
	close(stop)
	t.Logf("%d connections were tried", <-flooded)
	// Connections that say nothing take the seats of their own port, and of no other.
	var idle []int
	for range 100 {
		fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
		if err != nil {
			t.Fatal(err)
		}
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

// What is presented as the memory of a live link, and is not.
func TestFalseReadopt(t *testing.T) {
	s := newSite(t)
	c, stop := s.serve()
	l := s.link("f1u")
	s.add(c, l)
	a, b, generation, memory := s.joinRaw(l)
	until(t, "active", func() bool { return s.status(c, "f1u").State == broker.StateActive })
	memory, err := unix.FcntlInt(uintptr(memory), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(memory)
	var st unix.Stat_t
	if err := unix.Fstat(memory, &st); err != nil {
		t.Fatal(err)
	}
	file, err := os.Create(filepath.Join(s.dir, "file"))
	if err != nil {
		t.Fatal(err)
	}
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
	// The true memory is adopted still: none of those generations went live.
	_, stop = s.serve()
	a, b = s.raw(l.Ends[0]), s.raw(l.Ends[1])
	readopt(a, generation, memory)
	readopt(b, generation, memory)
	for _, r := range []*raw{a, b} {
		if m, _ := r.expect(wire.TypeWelcome); m.Body.(*wire.Welcome).Flags != wire.WelcomeReadopted || m.Generation != generation {
			t.Errorf("the true memory is not adopted: %+v", m)
		}
	}
	stop()
	// Nobody can use the numbers up.
	c, _ = s.serve()
	liar := s.raw(l.Ends[0])
	readopt(liar, 1<<32-1, memory)
	liar.expect(wire.TypeWelcome)
	if got := s.status(c, "f1u"); got.Generation > 1000 {
		t.Errorf("the broker goes on from generation %d", got.Generation)
	}
}

// Seals: at once, nobody changes the size; once both have mapped it, nobody
// punches holes or maps it writable.
func TestSeals(t *testing.T) {
	s := newSite(t)
	c, _ := s.serve()
	l := s.link("f1u")
	s.add(c, l)
	a, b, generation, fd := s.joinRaw(l)
	until(t, "active", func() bool { return s.status(c, "f1u").State == broker.StateActive })
	const punch = unix.FALLOC_FL_PUNCH_HOLE | unix.FALLOC_FL_KEEP_SIZE
	for name, err := range map[string]error{
		"truncate": unix.Ftruncate(fd, 0), "grow": unix.Ftruncate(fd, 1<<30), "punch": unix.Fallocate(fd, punch, 0, 4096),
	} {
		if !errors.Is(err, unix.EPERM) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := unix.Mmap(fd, 0, 4096, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED); !errors.Is(err, unix.EPERM) {
		t.Errorf("map writable: %v", err)
	}
	head := make([]byte, 48)
	if n, err := unix.Pread(fd, head, 0); err != nil || n != len(head) || head[12] != 1 {
		t.Errorf("the copy of the geometry is %x, %v", head, err)
	}
	a.hangUp()
	b.expect(wire.TypeRebind)
	b.hangUp()

	// An end that seals the seals itself has the link to lose, and its peer nothing but the generation.
	a, b = s.raw(l.Ends[0]), s.raw(l.Ends[1])
	a.hello(nil)
	a.expect(wire.TypeWelcome)
	next, _, fd := b.offered()
	a.nextOffer()
	if _, err := unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, unix.F_SEAL_SEAL); err != nil {
		t.Fatal(err)
	}
	a.mapped(next, fd)
	b.mapped(next, fd)
	a.refused(unix.EPERM)
	b.refused(unix.EPERM)
	if next <= generation {
		t.Errorf("generation %d follows %d", next, generation)
	}
	a.hangUp()
	b.hangUp()
	s.healthy(l)
}

// A function may report what it likes: figures, not a crash, are the result.
func TestTelemetryIsSuspect(t *testing.T) {
	s := newSite(t)
	c, _ := s.serve()
	l := s.link("f1u")
	s.add(c, l)
	r := s.raw(l.Ends[0])
	r.hello(func(h *wire.Hello) { h.TickHz = 0 })
	_, fds := r.expect(wire.TypeWelcome)
	junk := make([]byte, wire.TelemetrySize(1))
	for i := range junk {
		junk[i] = 0xff
	}
	copy(junk, []byte{0x44, 0x52, 0x41, 0x54, 1, 0, 0, 0})
	if _, err := unix.Pwrite(fds[0], junk, 0); err != nil {
		t.Fatal(err)
	}
	got := s.status(c, "f1u").Ends[0]
	if got.Counters.TxPackets != 1<<64-1 || got.Latency.Count != 0 || len(got.Violations) != wire.ViolationCount {
		t.Errorf("status is %+v", got)
	}
	if err := unix.Ftruncate(fds[0], 0); !errors.Is(err, unix.EPERM) {
		t.Errorf("the telemetry memfd can be truncated: %v", err)
	}
	if err := unix.Fallocate(fds[0], unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_KEEP_SIZE, 0, int64(len(junk))); err != nil {
		t.Fatal(err)
	}
	r.expect(wire.TypeStats)
	if got := s.status(c, "f1u").Ends[0]; got.Counters.TxPackets != 0 {
		t.Errorf("after a hole was punched: %+v", got)
	}
	time.Sleep(1100 * time.Millisecond)
	if got := s.status(c, "f1u").Ends[0]; got.Answers {
		t.Error("an end that does not answer is said to answer")
	}
	r.say(wire.Message{Type: wire.TypeStats, Body: &wire.Stats{Queues: 1, Counters: [wire.CounterCount]uint64{7}}})
	until(t, "its answer", func() bool { return s.status(c, "f1u").Ends[0].Counters.TxPackets == 7 })
}

// The control socket takes what its own user says, and refuses the rest in words.
func TestControlSocket(t *testing.T) {
	s := newSite(t)
	c, _ := s.serve()
	path := filepath.Join(s.state(), "control")
	info, err := os.Lstat(path)
	if err != nil || info.Mode() != os.ModeSocket|0o600 {
		t.Errorf("control socket: %v, %v", info.Mode(), err)
	}
	if err := broker.Serve(context.Background(), broker.Options{Dir: s.state()}); err == nil || !strings.Contains(err.Error(), "another broker") {
		t.Errorf("a second broker of the directory: %v", err)
	}
	for name, change := range map[string]func(l *broker.Link){
		"no name": func(l *broker.Link) { l.Name = "" }, "kind": func(l *broker.Link) { l.Kind = "tube" },
		"one end": func(l *broker.Link) { l.Ends = l.Ends[:1] }, "port name": func(l *broker.Link) { l.Ends[0].Port = "../x" },
		"MTU": func(l *broker.Link) { l.Ends[0].MTU = 67 }, "queues": func(l *broker.Link) { l.Ends[0].Queues = 17 },
		"relative socket": func(l *broker.Link) { l.Ends[0].Socket = "x" }, "same socket": func(l *broker.Link) { l.Ends[0].Socket = l.Ends[1].Socket },
		"slots": func(l *broker.Link) { l.Slots = 31 }, "packets": func(l *broker.Link) { l.PacketBytes = 1 << 20 },
		"messages": func(l *broker.Link) { l.MessageBytes = 5 << 20 }, "pages": func(l *broker.Link) { l.Pages = "large" },
		"shift": func(l *broker.Link) { l.SampleShift = 21 }, "policy": func(l *broker.Link) { l.Ends[0].HoldPolicy = "keep" },
		"no directory": func(l *broker.Link) { l.Ends[0].Socket = filepath.Join(s.dir, "none", "x") },
		"interface":    func(l *broker.Link) { l.Kind = broker.KindNetdev }, "MAC": func(l *broker.Link) { l.Ends[1].MAC = nil },
	} {
		l := s.link("f1u")
		change(&l)
		if err := c.Add(context.Background(), l); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	for _, text := range []string{"{}\n", "nonsense\n", `{"method":"add","params":{"unknown":1}}` + "\n", `{"method":"add","params":"` + strings.Repeat("x", 2<<20) + "\"}\n", `{"method":"remove"}` + "\n"} {
		if answer := ask(t, path, text); !strings.Contains(answer, `"error":`) {
			t.Errorf("%.60q is answered %q", text, answer)
		}
	}
	if all, err := c.Status(context.Background()); err != nil || len(all) != 0 {
		t.Errorf("after all that: %+v, %v", all, err)
	}
	link := s.link("f1u")
	if err := os.WriteFile(link.Ends[0].Socket, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := c.Add(context.Background(), link); err == nil || !strings.Contains(err.Error(), "in the way") {
		t.Errorf("a file is in the way: %v", err)
	}
}

// Sockets belong to their port's user from the first moment, also where the path
// is longer than an address.
func TestSockets(t *testing.T) {
	s := newSite(t)
	c, stop := s.serve()
	l := s.link("f1u")
	deep := filepath.Join(s.dir, strings.Repeat("d", 100))
	if err := os.Mkdir(deep, 0o700); err != nil {
		t.Fatal(err)
	}
	l.Ends[1].Socket = filepath.Join(deep, "f1u")
	if os.Getuid() == 0 {
		l.Ends[0].Owner = 12345
	}
	s.add(c, l)
	for _, e := range l.Ends {
		var st unix.Stat_t
		if err := unix.Lstat(e.Socket, &st); err != nil || st.Mode != unix.S_IFSOCK|0o600 || int(st.Uid) != e.Owner {
			t.Errorf("%s has mode %o and owner %d: %v", e.Socket, st.Mode, st.Uid, err)
		}
	}
	stop()
	for _, e := range l.Ends {
		if _, err := os.Lstat(e.Socket); err == nil {
			t.Errorf("%s stays behind", e.Socket)
		}
	}
}
