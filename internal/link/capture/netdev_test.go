// SPDX-License-Identifier: Apache-2.0

package capture

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/drayage/dray/internal/host"
	"github.com/drayage/dray/test/testenv"
)

// ours are the addresses of this test's frames.
var ours = []byte("\x02\x00\x00\x00\x00\x02\x02\x00\x00\x00\x00\x01")

// TestNetdev captures at one end of a veth pair, in its own namespace:
//
//	cap0 ---- cap1
//	  \ captured here
func TestNetdev(t *testing.T) {
	testenv.Root(t)
	testenv.Program(t, "ip")
	ns := namespace(t)
	inside(t, ns, "link add cap0 type veth peer cap1", "link set cap0 up", "link set cap1 up")
	for _, name := range []string{"cap0", "cap1"} { // the kernel drops packets sent before
		testenv.Must(t, ns.WaitCarrier(context.Background(), name))
	}
	d, err := OpenNetdev(ns, "cap0", 100, nil)
	testenv.Must(t, err)
	t.Cleanup(func() { d.Close() })
	frame := func(kind string, n int) []byte {
		return append([]byte(string(ours)+kind), bytes.Repeat([]byte{'x'}, n-12-len(kind))...)
	}
	short, long := frame("\x88\xb5", 64), frame("\x88\xb5", 1000)
	tagged := frame("\x81\x00\x20\x64\x88\xb5", 80)
	send(t, ns, "cap0", short)
	send(t, ns, "cap1", long)
	send(t, ns, "cap1", tagged)
	for _, want := range []struct {
		data   []byte
		length int
		sent   bool
	}{{short, 64, true}, {long[:100], 1000, false}, {tagged, 80, false}} {
		p := next(t, d)
		if !bytes.Equal(p.Data, want.data) || p.Length != want.length || p.Sent != want.sent {
			t.Errorf("got %d/%d bytes, sent %v: %q\nwant %d/%d bytes, sent %v: %q",
				len(p.Data), p.Length, p.Sent, p.Data, len(want.data), want.length, want.sent, want.data)
		}
		if age := time.Since(time.Unix(0, p.Time)); age < 0 || age > time.Minute {
			t.Errorf("its time is %v ago", age)
		}
	}
	if c := d.Counts(); c != (Counts{}) {
		t.Errorf("counts %+v", c)
	}
	inside(t, ns, "link del cap0")
	deadline := time.Now().Add(20 * time.Second)
	for err = nil; err == nil && time.Now().Before(deadline); {
		if err = d.Read(func(Packet) error { return nil }); err == nil {
			err = d.Wait(time.Millisecond)
		}
	}
	if !errors.Is(err, ErrEnded) || d.Reason() == "" {
		t.Errorf("deleted interface: %v because %q", err, d.Reason())
	}
	if _, err := OpenNetdev(ns, "absent", 100, nil); err == nil || !strings.Contains(err.Error(), "absent") {
		t.Errorf("missing interface: %v", err)
	}
}

// namespace creates a network namespace that is removed after the test.
func namespace(t *testing.T) host.Netns {
	t.Helper()
	path := filepath.Join(t.TempDir(), "net")
	testenv.Must(t, host.CreateNetns(path))
	t.Cleanup(func() {
		if out, err := exec.Command("umount", path).CombinedOutput(); err != nil {
			t.Errorf("umount %s: %v: %s", path, err, out)
		}
	})
	return host.Netns{Path: path}
}

func inside(t *testing.T, ns host.Netns, commands ...string) {
	t.Helper()
	for _, c := range commands {
		err := ns.Do(func() error {
			out, err := exec.Command("ip", strings.Fields(c)...).CombinedOutput()
			if err != nil {
				return fmt.Errorf("ip %s: %w: %s", c, err, out)
			}
			return nil
		})
		testenv.Must(t, err)
	}
}

// send sends a raw frame on an interface.
func send(t *testing.T, ns host.Netns, name string, frame []byte) {
	t.Helper()
	err := ns.Do(func() error {
		link, err := net.InterfaceByName(name)
		if err != nil {
			return err
		}
		fd, err := syscall.Socket(syscall.AF_PACKET, syscall.SOCK_RAW|syscall.SOCK_CLOEXEC, 0)
		if err != nil {
			return err
		}
		defer syscall.Close(fd)
		return syscall.Sendto(fd, frame, 0, &syscall.SockaddrLinklayer{Ifindex: link.Index})
	})
	testenv.Must(t, err)
}

// next waits for one of our packets.
func next(t *testing.T, s Source) Packet {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	var got *Packet
	stop := errors.New("one is enough")
	for ctx.Err() == nil {
		err := s.Read(func(p Packet) error {
			if !bytes.HasPrefix(p.Data, ours) {
				return nil // neighbour discovery
			}
			p.Data = bytes.Clone(p.Data)
			got = &p
			return stop
		})
		if errors.Is(err, stop) {
			return *got
		}
		if err == nil {
			err = s.Wait(100 * time.Millisecond)
		}
		testenv.Must(t, err)
	}
	t.Fatal("no packet came")
	return Packet{}
}
