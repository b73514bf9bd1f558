// SPDX-License-Identifier: Apache-2.0

package guest

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/drayage/dray/internal/function/guest/wire"
	"github.com/drayage/dray/internal/host"
)

// fake is a channel whose guest sends a fixed text, whatever it receives.
func fake(t testing.TB, says []byte) *Channel {
	t.Helper()
	ours, theirs := net.Pipe()
	t.Cleanup(func() { ours.Close() })
	go func() {
		defer theirs.Close()
		if _, _, err := wire.NewReader(theirs).Next(); err != nil { // the request
			return
		}
		go func() { _, _ = io.Copy(io.Discard, theirs) }()
		_, _ = theirs.Write(says)
	}()
	return &Channel{conn: ours, in: bufio.NewReader(ours)}
}

func program() Command { return Command{Request: wire.Request{Argv: []string{"true"}}} }

func frames(list ...[]byte) []byte {
	var all []byte
	for _, f := range list {
		all = append(all, f...)
	}
	return all
}

func frame(kind wire.Type, payload ...byte) []byte { return wire.Append(nil, kind, payload) }

func TestHostileGuest(t *testing.T) {
	started := frame(wire.Started)
	for name, test := range map[string]struct {
		says      []byte
		malformed bool
	}{
		"nothing":                  {nil, false},
		"an end before the start":  {frame(wire.Exit, 0, 0, 0, 0), true},
		"output before the start":  {frame(wire.Stdout, 'x'), true},
		"two starts":               {frames(started, started), true},
		"a late refusal":           {frames(started, frame(wire.Failed, 'x')), true},
		"a frame to the guest":     {frames(started, frame(wire.Exec, 'x')), true},
		"a short number":           {frames(started, frame(wire.Exit, 1)), true},
		"an impossible status":     {frames(started, frame(wire.Exit, 0, 0, 1, 0)), true},
		"a negative status":        {frames(started, frame(wire.Exit, 255, 255, 255, 255)), true},
		"an endless frame":         {append(started, byte(wire.Stdout), 255, 255, 255, 255), true},
		"no end":                   {started, false},
		"an unknown type":          {frames(started, frame(200)), true},
		"credit for nothing asked": {frames(started, frame(wire.Credit, 255, 255, 255, 255)), false},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := fake(t, test.says).Run(context.Background(), program())
			if err == nil || errors.Is(err, wire.ErrMalformed) != test.malformed {
				t.Errorf("error %v", err)
			}
		})
	}
	code, err := fake(t, frames(started, frame(wire.Beat), frame(wire.Exit, 0, 0, 0, 7))).Run(context.Background(), program())
	if code != 7 || err != nil {
		t.Errorf("a well-behaved guest: status %d, %v", code, err)
	}
}

// TestCreditIsBounded: a guest cannot make the host send more than a window at once.
func TestCreditIsBounded(t *testing.T) {
	s := &stream{credit: wire.Window, more: make(chan struct{}, 1), over: make(chan struct{})}
	s.credited(1 << 31)
	if n := s.take(1 << 30); n != wire.Window {
		t.Errorf("%d bytes at once", n)
	}
}

func TestGuestThatFallsSilent(t *testing.T) {
	defer func(d time.Duration) { silence = d }(silence)
	silence = 50 * time.Millisecond
	ours, theirs := net.Pipe()
	defer ours.Close()
	defer theirs.Close()
	go func() { _, _ = io.Copy(io.Discard, theirs) }()
	c := &Channel{conn: ours, in: bufio.NewReader(ours)}
	if _, err := c.Run(context.Background(), program()); !errors.Is(err, ErrSilent) {
		t.Errorf("error %v", err)
	}
}

// A guest that falls silent while its program runs is killed, not only reported.
func TestHungGuestIsKilled(t *testing.T) {
	qemu := exec.Command("sleep", "600")
	if err := qemu.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() { _ = qemu.Wait(); close(ended) }()
	id, err := host.Identify(qemu.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(Info{Process: id})
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	killHung(dir) // no guest: nothing
	if err := os.WriteFile(filepath.Join(dir, fileInfo), text, 0o600); err != nil {
		t.Fatal(err)
	}
	killHung(dir)
	select {
	case <-ended:
	case <-time.After(30 * time.Second):
		_ = qemu.Process.Kill()
		t.Error("the guest still runs")
	}
}

func FuzzGuest(f *testing.F) {
	f.Add(frames(frame(wire.Started), frame(wire.Stdout, 'x'), frame(wire.Exit, 0, 0, 0, 7)))
	f.Add(frames(frame(wire.Failed, 'n', 'o')))
	f.Fuzz(func(t *testing.T, says []byte) {
		code, err := fake(t, says).Run(context.Background(), program())
		if err == nil && (code < 0 || code > 255) {
			t.Fatalf("status %d", code)
		}
	})
}

func FuzzQMP(f *testing.F) {
	f.Add([]byte(`{"QMP":{}} {"return":{}} {"event":"x"} {"return":[{"cpu-index":0,"thread-id":7}]}`))
	f.Fuzz(func(t *testing.T, says []byte) {
		m, err := newMonitor(struct {
			io.Reader
			io.Writer
		}{bytes.NewReader(says), io.Discard}, func() {})
		if err != nil {
			return
		}
		threads, err := m.vcpuThreads()
		if err == nil && len(threads) > len(says) {
			t.Fatalf("%d threads", len(threads))
		}
	})
}
