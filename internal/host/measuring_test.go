// SPDX-License-Identifier: Apache-2.0

package host

import (
	"runtime"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/drayage/dray/test/testenv"
)

// TestOtherMeasurementsAreOfRoot: another user's socket of such a name is no
// measurement. The thread has a network namespace of its own, and ends with it.
func TestOtherMeasurementsAreOfRoot(t *testing.T) {
	testenv.Root(t)
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread()
		if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
			t.Error(err)
			return
		}
		for i, c := range []struct {
			uid  uintptr
			name string
			want int
		}{{65534, "forged", 0}, {0, "first", 1}, {65534, "again", 1}, {0, "second", 2}} {
			fd := listenAs(t, c.uid, measuringPrefix+"1/"+c.name)
			defer unix.Close(fd)
			for range 2 { // looking changes nothing
				if got := OtherMeasurements(); got != c.want {
					t.Errorf("%d: with %s of user %d there are %d measurements, want %d", i, c.name, c.uid, got, c.want)
				}
			}
		}
		end, err := AnnounceMeasurement()
		if err != nil {
			t.Error(err)
			return
		}
		defer end()
		if got := OtherMeasurements(); got != 2 {
			t.Errorf("with its own there are %d measurements, want 2", got)
		}
	}()
	<-done
}

// listenAs listens on an abstract socket as another user: only this thread is that.
func listenAs(t *testing.T, uid uintptr, name string) int {
	const unchanged = ^uintptr(0)
	become := func(uid uintptr) {
		if _, _, err := unix.RawSyscall(unix.SYS_SETRESUID, unchanged, uid, unchanged); err != 0 {
			t.Error(err)
		}
	}
	become(uid)
	defer become(0)
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Error(err)
		return -1
	}
	if err := unix.Bind(fd, &unix.SockaddrUnix{Name: name}); err != nil {
		t.Error(err)
	}
	if err := unix.Listen(fd, 16); err != nil {
		t.Error(err)
	}
	return fd
}
