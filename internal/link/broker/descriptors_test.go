// SPDX-License-Identifier: Apache-2.0

package broker_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/drayage/dray/internal/link/broker"
	"github.com/drayage/dray/internal/link/broker/wire"
	"github.com/drayage/dray/test/testenv"
)

// Constants of fcntl.h for F_NOTIFY.
const dnModify, dnMultishot = 0x2, 0x80000000

// tryEverything makes each call on a descriptor that could change what its other holders
// have, whatever the outcome. It returns the names of the calls that succeeded.
func tryEverything(fd int) (done []string) {
	try := func(name string, err error) {
		if err == nil {
			done = append(done, name)
		}
	}
	fcntl := func(name string, command, argument int) {
		_, err := unix.FcntlInt(uintptr(fd), command, argument)
		try(name, err)
	}
	for _, flag := range []int{unix.O_APPEND, unix.O_NONBLOCK, unix.O_ASYNC, unix.O_DIRECT, unix.O_NOATIME, 0} {
		fcntl(fmt.Sprintf("F_SETFL %#x", flag), unix.F_SETFL, flag)
	}
	for name, call := range map[string][2]int{
		"read lease": {unix.F_SETLEASE, unix.F_RDLCK}, "write lease": {unix.F_SETLEASE, unix.F_WRLCK},
		"notify": {unix.F_NOTIFY, dnModify | dnMultishot}, "signal": {unix.F_SETSIG, int(unix.SIGURG)},
		"pipe size": {unix.F_SETPIPE_SZ, 1 << 20}, "write seal": {unix.F_ADD_SEALS, unix.F_SEAL_WRITE},
	} {
		fcntl(name, call[0], call[1])
	}
	for _, how := range []int{unix.LOCK_EX, unix.LOCK_SH} {
		try(fmt.Sprint("flock ", how), unix.Flock(fd, how|unix.LOCK_NB))
	}
	lock := unix.Flock_t{Type: unix.F_WRLCK}
	try("OFD lock", unix.FcntlFlock(uintptr(fd), unix.F_OFD_SETLK, &lock))
	_, err := unix.Seek(fd, 1<<40, unix.SEEK_SET)
	try("seek", err)
	for _, size := range []int64{0, 4096, 1 << 40} {
		try(fmt.Sprint("truncate ", size), unix.Ftruncate(fd, size))
	}
	for _, mode := range []uint32{0, unix.FALLOC_FL_KEEP_SIZE, unix.FALLOC_FL_PUNCH_HOLE | unix.FALLOC_FL_KEEP_SIZE, unix.FALLOC_FL_COLLAPSE_RANGE, unix.FALLOC_FL_ZERO_RANGE, unix.FALLOC_FL_INSERT_RANGE} {
		try(fmt.Sprintf("fallocate %#x", mode), unix.Fallocate(fd, mode, 0, 4096))
	}
	try("fsync", unix.Fsync(fd))
	try("extended attribute", unix.Fsetxattr(fd, "user.dray", []byte("x"), 0))
	for level, most := range map[int]int{unix.SOL_SOCKET: 90, unix.SOL_PACKET: 30} {
		for option := 1; option <= most; option++ {
			for _, value := range []int{0, 1, 1 << 30} {
				try(fmt.Sprintf("option %d of level %d: %d", option, level, value), unix.SetsockoptInt(fd, level, option, value))
			}
		}
	}
	try("bind", unix.Bind(fd, &unix.SockaddrUnix{Name: "@dray-test"}))
	try("listen", unix.Listen(fd, 1))
	try("connect", unix.Connect(fd, &unix.SockaddrUnix{Name: "@dray-test"}))
	for range 300 { // until its receiver's queue is full
		if err := unix.Sendto(fd, []byte{1, 2}, unix.MSG_DONTWAIT|unix.MSG_NOSIGNAL, nil); err != nil {
			break
		}
	}
	try("own descriptor", unix.Sendmsg(fd, []byte{1}, unix.UnixRights(fd), nil, unix.MSG_DONTWAIT|unix.MSG_NOSIGNAL))
	return done
}

// TestEveryCallOnADescriptor tries each call on each descriptor that the broker hands out.
// Neither the other end nor the operator may notice.
func TestEveryCallOnADescriptor(t *testing.T) {
	for name, pick := range map[string]func(r *raw) int{
		"connection": func(r *raw) int { return r.fd },
		"telemetry":  func(r *raw) int { return r.fds[0] },
		"memory":     func(r *raw) int { return r.fds[1] },
		"bell":       func(r *raw) int { return r.fds[2] },
	} {
		for _, state := range []string{"offered", "sealed"} {
			t.Run(name+" "+state, func(t *testing.T) {
				s, c, l := serveLink(t)
				hostile, honest := s.welcomed(l.Ends[0]), s.welcomed(l.Ends[1])
				generation, _, memory := hostile.nextOffer()
				honest.nextOffer()
				if state == "sealed" {
					for _, r := range []*raw{hostile, honest} {
						r.mapped(generation, memory)
					}
					hostile.expect(wire.TypeSealed)
					honest.expect(wire.TypeSealed)
				}
				before := mode(t, honest.fds[1])
				t.Logf("succeeded: %q", tryEverything(pick(hostile)))
				if after := mode(t, honest.fds[1]); state == "sealed" && after.Size != before.Size {
					t.Errorf("the memory has %d bytes, %d before", after.Size, before.Size)
				}
				operatorIsServed(t, c, l)
				unix.Close(hostile.fd)
				hostile.fd = -1
				s.healthyAgain(c, l, honest)
			})
		}
	}
}

// TestEveryCallOnCaptureMemory tries each call on the memory of a capture. The one who
// captures may lose packets, but not the size of the memory, and the port stays healthy.
func TestEveryCallOnCaptureMemory(t *testing.T) {
	s, c, l := serveLink(t)
	for _, when := range []string{"before it is mapped", "while it is mapped"} {
		t.Run(when, func(t *testing.T) {
			hostile, honest, _, _ := s.joinRaw(l)
			start, memory, done := captureOf(hostile, c, l.Ends[0])
			if when == "before it is mapped" {
				t.Logf("succeeded: %q", tryEverything(memory))
			}
			hostile.say(wire.Message{Type: wire.TypeCapture, Body: &wire.Captured{}})
			k := <-done
			if k.err != nil {
				t.Fatal(k.err)
			}
			mapped, err := unix.Mmap(int(k.Memory.Fd()), 0, int(start.Size), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
			if err == nil && when == "while it is mapped" {
				t.Logf("succeeded: %q", tryEverything(memory))
			}
			if err == nil { // a function may refuse to be captured
				for at := 0; at < len(mapped); at += os.Getpagesize() {
					mapped[at]++
				}
				testenv.Must(t, unix.Munmap(mapped))
			}
			if st := mode(t, int(k.Memory.Fd())); st.Size != int64(start.Size) {
				t.Errorf("the memory has %d bytes, not %d", st.Size, start.Size)
			}
			testenv.Must(t, k.Close())
			operatorIsServed(t, c, l)
			hostile.hangUp()
			s.healthyAgain(c, l, honest)
		})
	}
}

// captured is the outcome of a request to capture.
type captured struct {
	*broker.Capture
	err error
}

// captureOf starts to capture an end. It returns what the end receives.
func captureOf(r *raw, c *broker.Client, e broker.End) (start *wire.Capture, memory int, done <-chan captured) {
	r.t.Helper()
	outcome := make(chan captured, 1)
	go func() {
		k, err := c.Capture(context.Background(), "", e.Function, e.Port, 0)
		outcome <- captured{k, err}
	}()
	m, fds := r.expect(wire.TypeCapture)
	return m.Body.(*wire.Capture), fds[0], outcome
}

// TestEveryCallOnAPacketSocket tries each call on a port's packet socket, even those that
// seccomp refuses to functions. Frames still pass between later ends of the link.
func TestEveryCallOnAPacketSocket(t *testing.T) {
	s := newFixture(t)
	l := s.link("n3")
	s.veth(&l)
	c, _ := s.serve()
	s.add(c, l)
	hostile := s.welcomed(l.Ends[0])
	_, fds := hostile.expect(wire.TypeOffer)
	t.Logf("succeeded: %q", tryEverything(fds[0]))
	operatorIsServed(t, c, l)
	honest, socket := s.sockets(l.Ends[1])
	hostile.hangUp()
	next, other := s.sockets(l.Ends[0])
	frame := slices.Concat(l.Ends[1].MAC, l.Ends[0].MAC, []byte{0x88, 0xb5}, make([]byte, 46))
	for _, pair := range [][2]int{{other, socket}, {socket, other}} {
		testenv.Must(t, unix.Send(pair[0], frame, 0))
		until(t, "received", func() bool {
			b := make([]byte, 100)
			n, _, err := unix.Recvfrom(pair[1], b, unix.MSG_DONTWAIT)
			return err == nil && bytes.Equal(b[:n], frame)
		})
	}
	honest.hangUp()
	next.hangUp()
}

// sockets opens a port over an interface, and returns its packet socket.
func (s *fixture) sockets(e broker.End) (*raw, int) {
	s.t.Helper()
	r := s.welcomed(e)
	_, fds := r.expect(wire.TypeOffer)
	return r, fds[0]
}

func mode(t testing.TB, fd int) (st unix.Stat_t) {
	t.Helper()
	testenv.Must(t, unix.Fstat(fd, &st))
	return st
}

// operatorIsServed moves the link and asks for its status. A call on a descriptor that makes
// the broker wait does so for longer.
func operatorIsServed(t testing.TB, c *broker.Client, l broker.Link) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	began := time.Now()
	l.SampleShift++
	if err := c.Relink(ctx, l); err != nil {
		t.Errorf("relink: %v", err)
	}
	if _, err := c.Status(ctx); err != nil {
		t.Errorf("status: %v", err)
	}
	if took := time.Since(began); took > testenv.Patient(20*time.Second) {
		t.Errorf("the operator waited %v", took)
	}
}

// healthyAgain drops the other end as well, and takes the link through a handshake.
func (s *fixture) healthyAgain(c *broker.Client, l broker.Link, honest *raw) {
	s.t.Helper()
	honest.hangUp()
	until(s.t, "both ends gone", func() bool {
		st := s.status(c, l.Name)
		return !st.Ends[0].Connected && !st.Ends[1].Connected
	})
	s.healthy(l)
}
