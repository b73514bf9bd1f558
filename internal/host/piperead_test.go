// SPDX-License-Identifier: Apache-2.0

package host

import (
	"errors"
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

func newPipe(t *testing.T) (*PipeReader, *os.File) {
	t.Helper()
	var fds [2]int
	if err := unix.Pipe2(fds[:], unix.O_CLOEXEC); err != nil {
		t.Fatal(err)
	}
	write := os.NewFile(uintptr(fds[1]), "write")
	t.Cleanup(func() { write.Close() })
	p, err := NewPipeReader(fds[0])
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return p, write
}

// TestOnlyWaitIsWoken: what is written while nothing waits causes no event.
func TestOnlyWaitIsWoken(t *testing.T) {
	p, write := newPipe(t)
	say := func(text string) {
		t.Helper()
		if _, err := write.WriteString(text); err != nil {
			t.Fatal(err)
		}
	}
	event := func() (is bool) {
		t.Helper()
		raw, err := p.epoll.SyscallConn()
		if err == nil {
			err = raw.Control(func(fd uintptr) { is = ready(int(fd)) })
		}
		if err != nil {
			t.Fatal(err)
		}
		return is
	}
	b := make([]byte, 100)
	for round, text := range []string{"", "a", "bc"} {
		if text != "" {
			say(text)
		}
		if event() {
			t.Errorf("round %d: an event before Wait", round)
		}
		say("x")
		if err := p.Wait(); err != nil {
			t.Fatal(err)
		}
		say("y")
		if event() {
			t.Errorf("round %d: an event after Wait", round)
		}
		if want := text + "xy"; p.Pending() != len(want) {
			t.Errorf("round %d: %d bytes are pending, not %d", round, p.Pending(), len(want))
		} else if n, err := p.Read(b); err != nil || string(b[:n]) != want {
			t.Errorf("round %d: %q, %v", round, b[:n], err)
		}
	}
	if _, err := p.Read(b); !errors.Is(err, unix.EAGAIN) {
		t.Errorf("an empty pipe: %v", err)
	}
}

func TestPipeEnds(t *testing.T) {
	p, write := newPipe(t)
	waited := make(chan error)
	go func() { waited <- p.Wait() }()
	write.Close()
	if err := <-waited; err != nil {
		t.Errorf("without a writer: %v", err)
	}
	if n, err := p.Read(make([]byte, 1)); n != 0 || err != nil {
		t.Errorf("without a writer: %d bytes, %v", n, err)
	}
	p, _ = newPipe(t)
	go func() { waited <- p.Wait() }()
	p.Interrupt()
	if err := <-waited; !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("interrupted: %v", err)
	}
}
