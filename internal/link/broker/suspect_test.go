// SPDX-License-Identifier: Apache-2.0

package broker_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/drayage/dray/internal/link/broker"
	"github.com/drayage/dray/internal/link/broker/wire"
	"github.com/drayage/dray/test/testenv"
)

// Seals. The size is fixed from the start. Once both ends have mapped the
// memory, nobody can punch holes or map it writable.
func TestSeals(t *testing.T) {
	s, c, l := serveLink(t)
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

	// An end that seals the seals itself can lose the link; its peer loses only the generation.
	a, b = s.raw(l.Ends[0]), s.raw(l.Ends[1])
	a.greet()
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

// A function may report anything: the result is figures, not a crash.
func TestTelemetryIsSuspect(t *testing.T) {
	s, c, l := serveLink(t)
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
	testenv.Must(t, unix.Fallocate(fds[0], unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_KEEP_SIZE, 0, int64(len(junk))))
	r.expect(wire.TypeStats)
	if got := s.status(c, "f1u").Ends[0]; got.Counters.TxPackets != 0 {
		t.Errorf("after a hole was punched: %+v", got)
	}
	until(t, "reported as not answering", func() bool { return !s.status(c, "f1u").Ends[0].Answers })
	r.say(wire.Message{Type: wire.TypeStats, Body: &wire.Stats{Queues: 1, Counters: [wire.CounterCount]uint64{7}}})
	until(t, "its answer", func() bool { return s.status(c, "f1u").Ends[0].Counters.TxPackets == 7 })
}

// The control socket accepts its own user's requests, and rejects others with a reason.
func TestControlSocket(t *testing.T) {
	s := newFixture(t)
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
	testenv.Must(t, os.WriteFile(link.Ends[0].Socket, nil, 0o600))
	if err := c.Add(context.Background(), link); err == nil || !strings.Contains(err.Error(), "that is not a socket") {
		t.Errorf("a file is that is not a socket: %v", err)
	}
}

// Sockets belong to their port's user from the start, even if the path is
// longer than an address.
func TestSockets(t *testing.T) {
	s := newFixture(t)
	c, stop := s.serve()
	l := s.link("f1u")
	deep := filepath.Join(s.dir, strings.Repeat("d", 100))
	testenv.Must(t, os.Mkdir(deep, 0o700))
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
			t.Errorf("%s is left", e.Socket)
		}
	}
}

// The broker sends a live end the sampling rate.
func TestSampling(t *testing.T) {
	s := newFixture(t)
	c, _ := s.serve()
	l := s.link("f1u")
	l.SampleShift = broker.SampleDefault
	s.add(c, l)
	r := s.raw(l.Ends[0])
	m, fds := r.greet()
	if got := m.Body.(*wire.Welcome).SampleShift; got != 6 {
		t.Errorf("one packet in 2^%d is stamped by default", got)
	}
	for _, tc := range []struct{ set, want uint32 }{
		{broker.SampleEvery, 0}, {3, 3}, {broker.SampleNone, wire.SampleNone}, {broker.SampleDefault, 6},
	} {
		l.SampleShift = tc.set
		testenv.Must(t, c.Relink(context.Background(), l))
		b := make([]byte, 4)
		if _, err := unix.Pread(fds[0], b, wire.SampleShiftOffset); err != nil || binary.LittleEndian.Uint32(b) != tc.want {
			t.Errorf("shift %d becomes %x, want %d: %v", tc.set, b, tc.want, err)
		}
	}
	if got := s.status(c, "f1u"); got.Rebinds != 0 {
		t.Errorf("generations ended: %+v", got)
	}
}

// A broker that exits leaves no goroutines or descriptors, whatever its links were doing.
func TestServeEndsWhole(t *testing.T) {
	s := newFixture(t)
	l := s.link("p0")
	goroutines, before := runtime.NumGoroutine(), descriptors(t)
	c, stop := s.serve()
	s.add(c, l)
	a, b, _, _ := s.joinRaw(l)
	silent := s.raw(l.Ends[0])
	for i := range 10 {
		s.add(c, s.link(fmt.Sprintf("p%d", i+1)))
	}
	alone := s.welcomed(s.link("p1").Ends[0])
	stop()
	if m, _ := a.expect(wire.TypeBye); m.Body.(*wire.Bye).Reason != wire.ByeRestart {
		t.Errorf("the end got %+v", m.Body)
	}
	for _, r := range []*raw{a, b, silent, alone} {
		r.hangUp()
	}
	settles(t, before)
	until(t, "without goroutines of its own", func() bool { return runtime.NumGoroutine() <= goroutines })

	// If one directory is missing when the next broker starts, it serves the
	// other links. That link keeps its numbers when it can be served again.
	testenv.Must(t, os.Rename(filepath.Dir(l.Ends[1].Socket), filepath.Join(s.dir, "away")))
	c, _ = s.serve()
	if all, err := c.Status(context.Background()); err != nil || len(all) != 0 || !strings.Contains(s.log.String(), "p0") {
		t.Errorf("served without their directory: %+v, %v, log %q", all, err, s.log)
	}
	testenv.Must(t, os.Rename(filepath.Join(s.dir, "away"), filepath.Dir(l.Ends[1].Socket)))
	s.add(c, l)
	if got := s.status(c, "p0"); got.Generation != 1 {
		t.Errorf("generation %d follows", got.Generation)
	}
}

// The broker keeps no copy of a bell: an end's death hangs up the other's bell without its help.
func TestBellsBelongToTheEnds(t *testing.T) {
	s, _, l := serveLink(t)
	a, b, _, _ := s.joinRaw(l)
	bell := b.fds[len(b.fds)-1]
	poll := []unix.PollFd{{Fd: int32(bell), Events: unix.POLLRDHUP}}
	if n, err := unix.Poll(poll, 0); n != 0 || err != nil {
		t.Fatalf("the bell has hung up while its end lives: %d, %v", n, err)
	}
	a.hangUp()
	until(t, "hung up", func() bool {
		n, _ := unix.Poll(poll, 0)
		return n == 1 && poll[0].Revents&unix.POLLHUP != 0
	})
}

// The broker notices a process's death even if a child holds the connection open.
func TestDeathBehindAnOpenConnection(t *testing.T) {
	testenv.Program(t, "sleep")
	s, c, l := serveLink(t)
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), holderEnv+"="+l.Ends[0].Socket)
	out, err := cmd.Output()
	testenv.Must(t, err)
	child, err := strconv.Atoi(strings.TrimSpace(string(out)))
	testenv.Must(t, err)
	t.Cleanup(func() { _ = unix.Kill(child, unix.SIGKILL) })
	until(t, "missed", func() bool { return !s.status(c, "f1u").Ends[0].Connected })
	if err := unix.Kill(child, 0); err != nil {
		t.Errorf("the child is gone, so the test proves nothing: %v", err)
	}
	s.healthy(l)
}

// A broker whose chain was removed and created again leaves the sockets of the
// new broker alone.
func TestABrokerThatOutlivedItsChain(t *testing.T) {
	s := newFixture(t)
	c, stop := s.serve()
	l := s.link("f1u")
	s.add(c, l)
	testenv.Must(t, os.RemoveAll(s.state()))
	for _, e := range l.Ends {
		testenv.Must(t, os.Remove(e.Socket))
	}
	c, _ = s.serve()
	s.add(c, l)
	stop()
	s.status(s.dial(), "f1u")
	s.healthy(l)
}

// TestHolesAreRefused releases pages before the memory is sealed. The end that touched them
// would pay for them again, and a small limit would not bear it.
func TestHolesAreRefused(t *testing.T) {
	s, c, l := serveLink(t)
	hostile, honest := s.raw(l.Ends[0]), s.raw(l.Ends[1])
	hostile.greet()
	honest.greet()
	generation, _, memfd := hostile.nextOffer()
	honest.nextOffer()
	testenv.Must(t, unix.Fallocate(memfd, unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_KEEP_SIZE, 0, 4096))
	hostile.mapped(generation, memfd)
	honest.mapped(generation, memfd)
	if why := honest.refused(unix.EPERM); !strings.Contains(why, "released pages") {
		t.Errorf("it says %q", why)
	}
	hostile.refused(unix.EPERM)
	if st := s.status(c, l.Name); st.State == broker.StateActive {
		t.Errorf("status is %+v", st)
	}
	s.healthy(l)
}

// TestFlagsOfTelemetry sets flags on the file that the end shares with the broker, if it
// shares one. With O_APPEND the broker could not write what a move changes.
func TestFlagsOfTelemetry(t *testing.T) {
	s, c, l := serveLink(t)
	r := s.raw(l.Ends[0])
	_, fds := r.greet()
	if _, err := unix.FcntlInt(uintptr(fds[0]), unix.F_SETFL, unix.O_APPEND|unix.O_NONBLOCK); err != nil {
		t.Fatal(err)
	}
	to := l
	to.SampleShift++
	if err := c.Relink(context.Background(), to); err != nil {
		t.Errorf("an end vetoes a move: %v", err)
	}
}
