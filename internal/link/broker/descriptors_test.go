// SPDX-License-Identifier: Apache-2.0

package broker_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/drayage/dray/internal/link/broker"
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
					hostile.mapped(generation, memory)
					honest.mapped(generation, memory)
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

func mode(t testing.TB, fd int) (st unix.Stat_t) {
	t.Helper()
	testenv.Must(t, unix.Fstat(fd, &st))
	return st
}

// operatorIsServed moves the link and asks for its status.
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
	if took := time.Since(began); took > 2*time.Second {
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
