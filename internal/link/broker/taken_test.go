// SPDX-License-Identifier: Apache-2.0

package broker_test

import (
	"os/exec"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/drayage/dray/internal/link/broker"
	"github.com/drayage/dray/internal/link/broker/wire"
	"github.com/drayage/dray/test/testenv"
)

// TestAPortThatIsTaken: an application gets the same error, whether the broker
// hangs up before or after it gets the HELLO.
func TestAPortThatIsTaken(t *testing.T) {
	t.Run("by an end", func(t *testing.T) {
		s := newFixture(t)
		c, _ := s.serve()
		l := s.link("f1u")
		s.add(c, l)
		s.welcomed(l.Ends[0])
		s.expectBusy(l.Ends[0], "100")
	})
	for name, heard := range map[string]bool{"before HELLO": false, "after HELLO": true} {
		t.Run("refused "+name, func(t *testing.T) {
			s := newFixture(t)
			e := s.link("f1u").Ends[0]
			refuseAll(t, e.Socket, heard)
			s.expectBusy(e, "200")
		})
	}
}

// expectBusy opens the port with a C program.
func (s *fixture) expectBusy(e broker.End, times string) {
	s.t.Helper()
	if out, err := exec.Command(endProgram(s.t), filepath.Dir(e.Socket), e.Port, "busy", times).CombinedOutput(); err != nil {
		s.t.Errorf("%v:\n%s", err, out)
	}
}

// refuseAll answers every connection with EBUSY, and closes it unread: after
// HELLO arrives, or at once.
func refuseAll(t *testing.T, path string, heard bool) {
	t.Helper()
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	testenv.Must(t, err)
	testenv.Must(t, unix.Bind(fd, &unix.SockaddrUnix{Name: path}))
	testenv.Must(t, unix.Listen(fd, 8))
	done := make(chan struct{})
	t.Cleanup(func() {
		_ = unix.Shutdown(fd, unix.SHUT_RD) // ends accept
		<-done
		unix.Close(fd)
	})
	go func() {
		defer close(done)
		answer := wire.Message{Type: wire.TypeError, Body: wire.NewError(uint32(unix.EBUSY), uint32(wire.TypeHello), "the port is open")}.Marshal()
		for {
			conn, _, err := unix.Accept4(fd, unix.SOCK_CLOEXEC)
			if err != nil {
				return
			}
			if heard {
				_, _ = unix.Poll([]unix.PollFd{{Fd: int32(conn), Events: unix.POLLIN}}, int(patience.Milliseconds()))
			}
			_, _ = unix.SendmsgN(conn, answer, nil, nil, unix.MSG_NOSIGNAL)
			unix.Close(conn)
		}
	}()
}
