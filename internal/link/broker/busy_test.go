// SPDX-License-Identifier: Apache-2.0

package broker

import (
	"context"
	"fmt"
	"net"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/drayage/dray/internal/link/broker/wire"
	"github.com/drayage/dray/test/testenv"
)

// patience bounds the wait on a busy machine for steps that take milliseconds.
const patience = 30 * time.Second

// newTestBroker returns a broker without a control socket.
func newTestBroker(t *testing.T) *broker {
	t.Helper()
	j, err := openJournal(t.TempDir())
	testenv.Must(t, err)
	b := &broker{journal: j, log: new(logger), timeouts: Patient, links: map[string]*link{}, sockets: map[string][]string{}, busy: map[string]chan struct{}{}}
	b.ledger = newLedger(b.log)
	t.Cleanup(b.ledger.close)
	t.Cleanup(b.leave)
	return b
}

func twoEnds(dir, name string) Link {
	l := Link{Name: name, Kind: KindShm, Slots: 64}
	for i := range 2 {
		l.Ends = append(l.Ends, End{Function: fmt.Sprint("f", i), Port: name, Socket: filepath.Join(dir, fmt.Sprint(name, i)), MTU: 1500,
			MAC: net.HardwareAddr{2, 0, 0, 0, 0, byte(i)}})
	}
	return l
}

// TestABusyLinkIsAnIsland keeps one link busy, as if it allocated gigabytes.
// Other links can still be added, moved, removed and queried.
func TestABusyLinkIsAnIsland(t *testing.T) {
	testenv.Root(t)
	b, dir := newTestBroker(t), t.TempDir()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	for _, name := range []string{"busy", "calm"} {
		testenv.Must(t, b.add(ctx, twoEnds(dir, name)))
	}
	release, began := make(chan struct{}), make(chan struct{})
	busy := b.find("busy")
	go func() { _ = busy.call(context.Background(), func() { close(began); <-release }) }()
	<-began
	removed := make(chan error, 1)
	go func() { removed <- b.remove(ctx, "busy") }()

	if err := b.relink(ctx, twoEnds(dir, "calm")); err != nil {
		t.Error("move:", err)
	}
	if err := b.add(ctx, twoEnds(dir, "more")); err != nil {
		t.Error("add:", err)
	}
	if err := b.remove(ctx, "more"); err != nil {
		t.Error("remove:", err)
	}
	for range 2 * cap(busy.calls) {
		busy.askStatus()
	}
	if n := len(busy.calls); n > 2 { // frequent callers do not fill the queue
		t.Errorf("%d calls wait for the busy link", n)
	}
	var got map[string]LinkStatus
	for late := true; late && ctx.Err() == nil; late = got["calm"].Late {
		got = statusOf(ctx, t, b)
		if s := got["busy"]; !s.Late || s.State != StateEmpty || len(s.Ends) != 2 || len(got) != 2 {
			t.Fatalf("%d links; status of the busy one: %+v", len(got), s)
		}
	}
	select {
	case err := <-removed:
		t.Errorf("the busy link was removed too early: %v", err)
	default:
	}
	close(release)
	if err := <-removed; err != nil {
		t.Error(err)
	}
	if got := statusOf(ctx, t, b); len(got) != 1 {
		t.Errorf("at the end: %+v", got)
	}
}

func statusOf(ctx context.Context, t *testing.T, b *broker) map[string]LinkStatus {
	t.Helper()
	all, err := b.status(ctx)
	testenv.Must(t, err)
	got := map[string]LinkStatus{}
	for _, s := range all {
		got[s.Name] = s
	}
	return got
}

// TestOneChangeAtATime adds one link from many goroutines: one adds it, and
// the others find it.
func TestOneChangeAtATime(t *testing.T) {
	testenv.Root(t)
	b, l := newTestBroker(t), twoEnds(t.TempDir(), "f1u")
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	const callers = 8
	errs := make(chan error, callers)
	for range callers {
		go func() {
			err := b.add(ctx, l)
			if err == nil {
				err = b.relink(ctx, l)
			}
			errs <- err
		}()
	}
	for range callers {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
	if len(b.links) != 1 || len(b.busy) != 0 {
		t.Errorf("%d links, %d operations pending", len(b.links), len(b.busy))
	}
}

// TestARefusalIsReadFirst: a second end's HELLO arrives before the broker looks. If
// the broker left it unread, the end would see an error before the reason.
func TestARefusalIsReadFirst(t *testing.T) {
	testenv.Root(t)
	b, spec := newTestBroker(t), twoEnds(t.TempDir(), "f1u")
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	testenv.Must(t, b.add(ctx, spec))
	hello := &wire.Hello{Mode: wire.ModeSleeping}
	copy(hello.Port[:], "f1u")
	enter := func() int {
		fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
		testenv.Must(t, err)
		t.Cleanup(func() { unix.Close(fd) })
		testenv.Must(t, unix.Connect(fd, &unix.SockaddrUnix{Name: spec.Ends[0].Socket}))
		testenv.Must(t, send(fd, wire.Message{Type: wire.TypeHello, Body: hello}))
		return fd
	}
	buffer := make([]byte, wire.MaxMessage)
	if _, err := unix.Read(enter(), buffer); err != nil { // its WELCOME
		t.Fatal(err)
	}
	release, began := make(chan struct{}), make(chan struct{})
	go func() { _ = b.find("f1u").call(context.Background(), func() { close(began); <-release }) }()
	<-began
	second := enter()
	close(release)
	n, err := unix.Read(second, buffer)
	if err != nil {
		t.Fatalf("before the reason: %v", err)
	}
	m, err := wire.Parse(buffer[:n], 0, wire.FromBroker)
	if e, ok := m.Body.(*wire.Error); err != nil || !ok || unix.Errno(e.Code) != unix.EBUSY {
		t.Errorf("got %+v, %v", m, err)
	}
}

// TestMemoryThatCannotBeCountedIsNotLent serves links on a host without inotify instances.
func TestMemoryThatCannotBeCountedIsNotLent(t *testing.T) {
	b, dir := newTestBroker(t), t.TempDir()
	b.ledger.close()
	b.ledger = &ledger{done: b.ledger.done, lent: map[int32]lent{}}
	l := twoEnds(dir, "f1u")
	testenv.Must(t, b.add(context.Background(), l))
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	testenv.Must(t, err)
	defer unix.Close(fd)
	testenv.Must(t, unix.Connect(fd, &unix.SockaddrUnix{Name: l.Ends[0].Socket}))
	hello := &wire.Hello{Features: features, Mode: wire.ModeSleeping, Clock: wire.ClockCounter, TickHz: 2e9}
	copy(hello.Port[:], "f1u")
	testenv.Must(t, send(fd, wire.Message{Type: wire.TypeHello, Body: hello}))
	answer := make([]byte, wire.MaxMessage)
	n, err := unix.Read(fd, answer)
	testenv.Must(t, err)
	m, err := wire.Parse(answer[:n], 0, wire.FromBroker)
	testenv.Must(t, err)
	if refusal, ok := m.Body.(*wire.Error); !ok || unix.Errno(refusal.Code) != unix.ENOMEM {
		t.Errorf("it answers %+v", m.Body)
	}
}
