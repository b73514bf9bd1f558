// SPDX-License-Identifier: Apache-2.0

package node

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/drayage/dray/test/testenv"
)

// spoil does to its output what a function can do, and keeps what it can. It returns what
// it holds, and how much of its own output it has taken back.
func spoil(t *testing.T, fd uintptr) (held []int, stolen int) {
	t.Helper()
	fcntl := func(command, argument int) {
		_, err := unix.FcntlInt(fd, command, argument)
		t.Logf("fcntl %d, %#x: %v", command, argument, err)
	}
	fcntl(unix.F_SETFL, unix.O_NONBLOCK|unix.O_DIRECT|unix.O_ASYNC)
	fcntl(unix.F_SETOWN, os.Getpid())
	fcntl(unix.F_SETSIG, int(unix.SIGURG))
	fcntl(unix.F_SETLEASE, unix.F_WRLCK)
	fcntl(unix.F_NOTIFY, 0x2)
	t.Logf("flock: %v, fchmod: %v, fchown: %v", unix.Flock(int(fd), unix.LOCK_EX|unix.LOCK_NB), unix.Fchmod(int(fd), 0), unix.Fchown(int(fd), 1, 1))
	for _, mode := range []int{unix.O_RDONLY, unix.O_RDWR} {
		again, err := unix.Open(fmt.Sprintf("/proc/self/fd/%d", fd), mode|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
		testenv.Must(t, err)
		held = append(held, again)
	}
	_, _ = unix.Write(int(fd), make([]byte, 5000))
	b := make([]byte, 1<<16)
	for n, err := 1, error(nil); n > 0 && err == nil; {
		if n, err = unix.Read(held[0], b); err == nil {
			stolen += n
		}
	}
	n, err := unix.Vmsplice(int(fd), []unix.Iovec{{Base: &b[0], Len: 4096}}, unix.SPLICE_F_NONBLOCK)
	t.Logf("vmsplice: %d, %v", n, err)
	m, err := unix.Tee(held[0], int(fd), 4096, unix.SPLICE_F_NONBLOCK)
	t.Logf("tee: %d, %v", m, err)
	for _, size := range []int{1 << 20, 4096} {
		fcntl(unix.F_SETPIPE_SZ, size)
	}
	return held, stolen
}

// TestEveryCallOnTheLogPipe: whatever an instance does to its output, the next instance's
// output blocks as commands expect, and all of it is in the log.
func TestEveryCallOnTheLogPipe(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.log")
	o, err := newOutput(path)
	testenv.Must(t, err)
	first, err := o.open()
	testenv.Must(t, err)
	held, stolen := spoil(t, first.Fd())
	t.Logf("it took back %d bytes of its own", stolen)
	first.Close()
	for _, fd := range held {
		unix.Close(fd)
	}
	o.drain()
	next, err := o.open()
	testenv.Must(t, err)
	flags, err := unix.FcntlInt(next.Fd(), unix.F_GETFL, 0)
	if size, _ := unix.FcntlInt(next.Fd(), unix.F_GETPIPE_SZ, 0); err != nil || flags&(unix.O_NONBLOCK|unix.O_DIRECT|unix.O_ASYNC) != 0 || size != readSize {
		t.Errorf("the next instance finds flags %#x, %d bytes of pipe, %v", flags, size, err)
	}
	want := strings.Repeat("the next instance\n", 20000)
	if _, err := next.WriteString(want); err != nil {
		t.Error(err)
	}
	next.Close()
	o.close()
	if text, err := os.ReadFile(path); err != nil || !strings.HasSuffix(string(text), want) {
		t.Errorf("the end of the next instance's output is missing; %d bytes are in the log, %v", len(text), err)
	}
}
