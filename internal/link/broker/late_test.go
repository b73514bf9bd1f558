// SPDX-License-Identifier: Apache-2.0

package broker

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/drayage/dray/internal/link/broker/wire"
	"github.com/drayage/dray/test/testenv"
)

// These tests stop a part of the broker, as a busy machine does, until a deadline has passed.
// What came meanwhile must still count.

// serveHeld serves a link whose port a the onlooker can open. hold stops the link's goroutine
// after f, until release.
func serveHeld(t *testing.T, timeouts timeouts) (ctx context.Context, l *link, o *onlooker, hold func(f func()) (release func())) {
	t.Helper()
	testenv.Root(t)
	b := newTestBroker(t)
	b.timeouts = timeouts
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	o = &onlooker{t: t, dir: t.TempDir(), fd: -1}
	spec := twoEnds(o.dir, "a")
	spec.Ends[0].Socket = filepath.Join(o.dir, "a")
	testenv.Must(t, b.add(ctx, spec))
	l = b.find("a")
	return ctx, l, o, func(f func()) func() {
		held, released := make(chan struct{}), make(chan struct{})
		go func() { _ = l.call(ctx, func() { f(); close(held); <-released }) }()
		<-held
		return func() { close(released) }
	}
}

func TestWhatIsReadyIsServedInTime(t *testing.T) {
	p := pollerOf(t)
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	testenv.Must(t, err)
	defer unix.Close(pair[1])
	ready := false
	_, err = p.add(pair[0], false, func() { ready = true })
	testenv.Must(t, err)
	_, err = unix.Write(pair[1], []byte{1})
	testenv.Must(t, err)
	deadline := time.Now()
	if served, err := p.serve(deadline); err != nil || !ready || served.Before(deadline) {
		t.Errorf("served at %v, deadline %v, ready %v: %v", served, deadline, ready, err)
	}
}

func TestAMessageThatHasComeIsInTime(t *testing.T) {
	ctx, l, o, hold := serveHeld(t, Patient)
	e := l.ends[0]
	o.connect()
	for waits := 0; waits == 0; time.Sleep(time.Millisecond) {
		testenv.Must(t, l.call(ctx, func() { waits = len(e.pending) }))
	}
	release := hold(func() { e.pending[0].deadline = time.Now() })
	o.sayHello(wire.FeaturesKnown)
	release()
	o.hearWelcome()
}

func TestAnAnswerToACaptureThatHasComeIsInTime(t *testing.T) {
	hasty := Patient
	hasty.capture = time.Nanosecond
	ctx, l, o, hold := serveHeld(t, hasty)
	o.open(wire.FeaturesKnown)
	k, err := l.newCapture(ctx, l.ends[0], 100)
	testenv.Must(t, err)
	defer unix.Close(k.memfd)
	release := hold(func() {})
	_, memory := o.accept(0)
	unix.Close(memory)
	answered, later := make(chan error, 1), make(chan struct{})
	defer close(later)
	queued := func(calls int) { // or it has given up
		for len(l.calls) < calls && len(answered) == 0 {
			time.Sleep(time.Millisecond)
		}
	}
	go func() { answered <- l.awaitCapture(ctx, l.ends[0], k) }()
	queued(1)
	go func() { _ = l.call(ctx, func() { <-later }) }() // the goroutine waits for no event meanwhile
	queued(2)
	release()
	if err := <-answered; err != nil {
		t.Error(err)
	}
}

// connections are two ends of a connection to the control socket.
func connections(t *testing.T) (client, server *net.UnixConn) {
	t.Helper()
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	testenv.Must(t, err)
	var ends []*net.UnixConn
	for _, fd := range fds {
		f := os.NewFile(uintptr(fd), "connection")
		c, err := net.FileConn(f) // a copy
		f.Close()
		testenv.Must(t, err)
		t.Cleanup(func() { c.Close() })
		ends = append(ends, c.(*net.UnixConn))
	}
	return ends[0], ends[1]
}

func TestARequestThatHasComeIsInTime(t *testing.T) {
	b := newTestBroker(t)
	b.timeouts.request = -time.Second
	client, server := connections(t)
	_, err := client.Write([]byte(`{"method":"status"}` + "\n"))
	testenv.Must(t, err)
	(&control{broker: b}).answer(context.Background(), server)
	testenv.Must(t, client.SetDeadline(time.Now().Add(patience)))
	answer := make([]byte, 1000)
	if n, err := client.Read(answer); err != nil || string(answer[:n]) != `{"result":[]}`+"\n" {
		t.Errorf("answered %q, %v", answer[:n], err)
	}
	// Nothing has come of this one.
	client, server = connections(t)
	(&control{broker: b}).answer(context.Background(), server)
	testenv.Must(t, client.SetDeadline(time.Now().Add(patience)))
	if n, err := client.Read(answer); err != nil || !strings.Contains(string(answer[:n]), "timeout") {
		t.Errorf("without a request: answered %q, %v", answer[:n], err)
	}
}

// TestACaptureThatTheBrokerKeeps: Close must not say that the port can be captured again.
func TestACaptureThatTheBrokerKeeps(t *testing.T) {
	capturing := func() (*Capture, *net.UnixConn) {
		null, err := os.Open(os.DevNull)
		testenv.Must(t, err)
		client, server := connections(t)
		return &Capture{Memory: null, conn: client, ended: make(chan struct{})}, server
	}
	k, _ := capturing()
	go k.await()
	if err := k.close(time.Millisecond); err == nil || !strings.Contains(err.Error(), "may still be captured") {
		t.Errorf("the broker keeps the capture: error %v", err)
	}
	k, server := capturing()
	testenv.Must(t, server.Close())
	testenv.Must(t, endRequest(k.conn, -time.Second))
	k.await()
	if k.late != nil {
		t.Errorf("the broker has hung up: error %v", k.late)
	}
	testenv.Must(t, k.Memory.Close())
}
