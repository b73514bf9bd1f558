// SPDX-License-Identifier: Apache-2.0

package broker

import (
	"context"
	"errors"
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

// onlooker is a broker with one link, and a hand-made end of one of its ports.
type onlooker struct {
	t      *testing.T
	client *Client
	dir    string // of the sockets
	fd     int    // of the end; -1: none
}

// newOnlooker opens port a of function f.
func newOnlooker(t *testing.T) *onlooker {
	t.Helper()
	o := newBrokerOf(t)
	o.open(wire.FeaturesKnown)
	return o
}

// newBrokerOf serves a link between ports a and b of function f, which no end opens.
func newBrokerOf(t *testing.T) *onlooker {
	t.Helper()
	dir := t.TempDir()
	ctx, cancel := context.WithCancel(context.Background())
	ready, served := make(chan struct{}), make(chan error, 1)
	go func() {
		o := Options{Dir: filepath.Join(dir, "broker"), Ready: func() { close(ready) }}
		served <- Serve(ctx, o.Within(Patient))
	}()
	t.Cleanup(func() {
		cancel()
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	select {
	case <-ready:
	case err := <-served:
		t.Fatal(err)
	}
	o := &onlooker{t: t, dir: dir, fd: -1}
	var err error
	if o.client, err = Dial(filepath.Join(dir, "broker")); err != nil {
		t.Fatal(err)
	}
	end := func(port string, mac byte) End {
		return End{Function: "f", Port: port, Socket: filepath.Join(dir, port), Owner: os.Getuid(),
			MAC: net.HardwareAddr{2, 0, 0, 0, 0, mac}, MTU: 1500, Queues: 2}
	}
	l := Link{Name: "l", Kind: KindShm, Ends: []End{end("a", 1), end("b", 2)}}
	testenv.Must(t, o.client.Add(ctx, l))
	return o
}

// open opens port a with an end that supports these features.
func (o *onlooker) open(features uint64) {
	o.t.Helper()
	o.connect()
	o.sayHello(features)
	o.hearWelcome()
}

// connect connects to port a.
func (o *onlooker) connect() {
	o.t.Helper()
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	testenv.Must(o.t, err)
	o.fd = fd
	o.t.Cleanup(o.leave)
	timeout := unix.Timeval{Sec: 20}
	if err := errors.Join(unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &timeout), unix.Connect(fd, &unix.SockaddrUnix{Name: filepath.Join(o.dir, "a")})); err != nil {
		o.t.Fatal(err)
	}
}

func (o *onlooker) sayHello(features uint64) {
	o.t.Helper()
	hello := &wire.Hello{Features: features, TickHz: 1e9}
	copy(hello.Port[:], "a")
	o.say(wire.Message{Type: wire.TypeHello, Body: hello})
}

func (o *onlooker) hearWelcome() {
	o.t.Helper()
	if m, telemetry := o.hear(); m.Type != wire.TypeWelcome {
		o.t.Fatalf("got %+v", m)
	} else {
		unix.Close(telemetry)
	}
}

func (o *onlooker) leave() {
	if o.fd >= 0 {
		unix.Close(o.fd)
	}
	o.fd = -1
}

func (o *onlooker) say(m wire.Message) {
	o.t.Helper()
	testenv.Must(o.t, send(o.fd, m))
}

// hear waits for the next message and its descriptor, or -1.
func (o *onlooker) hear() (wire.Message, int) {
	o.t.Helper()
	buffer, rights := make([]byte, wire.MaxMessage), make([]byte, unix.CmsgSpace(4))
	n, rn, _, _, err := unix.Recvmsg(o.fd, buffer, rights, unix.MSG_CMSG_CLOEXEC)
	for errors.Is(err, unix.EINTR) { // a call with a timeout is not restarted
		n, rn, _, _, err = unix.Recvmsg(o.fd, buffer, rights, unix.MSG_CMSG_CLOEXEC)
	}
	testenv.Must(o.t, err)
	fds := rightsOf(rights[:rn])
	m, err := wire.Parse(buffer[:n], len(fds), wire.FromBroker)
	testenv.Must(o.t, err)
	return m, append(fds, -1)[0]
}

// started is the result of a capture request.
type started struct {
	capture *Capture
	err     error
}

func (o *onlooker) capture(port string, snaplen int) <-chan started {
	done := make(chan started, 1)
	go func() {
		k, err := o.client.Capture(context.Background(), "", "f", port, snaplen)
		done <- started{k, err}
	}()
	return done
}

// accept answers the start of a capture, and returns the capture memory.
func (o *onlooker) accept(errno unix.Errno) (wire.Capture, int) {
	o.t.Helper()
	m, fd := o.hear()
	start, ok := m.Body.(*wire.Capture)
	if !ok || fd < 0 {
		o.t.Fatalf("got %+v with descriptor %d; want the start of a capture", m, fd)
	}
	o.say(wire.Message{Type: wire.TypeCapture, Body: &wire.Captured{Error: uint32(errno)}})
	return *start, fd
}

// once accepts a capture that was asked for, and closes it.
func (o *onlooker) once(done <-chan started) {
	o.t.Helper()
	_, memory := o.accept(0)
	unix.Close(memory)
	k := <-done
	if k.err != nil {
		o.t.Fatal(k.err)
	}
	if err := k.capture.Close(); err != nil {
		o.t.Error(err)
	}
}

// stopped waits for the end of the capture.
func (o *onlooker) stopped() {
	o.t.Helper()
	m, fd := o.hear()
	if stop, ok := m.Body.(*wire.Capture); !ok || *stop != (wire.Capture{}) || fd >= 0 {
		o.t.Errorf("got %+v; want the capture to be stopped", m)
	}
}

func TestCapture(t *testing.T) {
	o := newOnlooker(t)
	for range 2 { // one after the other
		done := o.capture("a", 0)
		start, memory := o.accept(0)
		if start.Snaplen != 1518 || start.Queues != 2 {
			t.Errorf("the end was told %+v", start)
		}
		k := (<-done)
		if k.err != nil {
			t.Fatal(k.err)
		}
		if k.capture.Start != start {
			t.Errorf("the end was told %+v, and the reader %+v", start, k.capture.Start)
		}
		if _, err := unix.Pwrite(memory, []byte("hello"), 300); err != nil {
			t.Fatal(err)
		}
		unix.Close(memory)
		b := make([]byte, 5)
		if _, err := k.capture.Memory.ReadAt(b, 300); err != nil || string(b) != "hello" {
			t.Errorf("the reader has %q (%v): not the same memory", b, err)
		}
		if err := k.capture.Memory.Truncate(4096); err == nil {
			t.Error("the memory can be truncated")
		}
		again := <-o.capture("a", 64)
		if again.err == nil || !strings.Contains(again.err.Error(), "already") {
			t.Errorf("a second capture of the port: %v", again.err)
		}
		if err := k.capture.Close(); err != nil {
			t.Error(err)
		}
		o.stopped()
	}
}

func TestCaptureEndsWithThePort(t *testing.T) {
	o := newOnlooker(t)
	done := o.capture("a", 100)
	_, memory := o.accept(0)
	unix.Close(memory)
	k := <-done
	if k.err != nil {
		t.Fatal(k.err)
	}
	o.leave()
	select {
	case <-k.capture.Ended():
	case <-time.After(patience):
		t.Fatal("the capture continues after the port was closed")
	}
	if !strings.Contains(k.capture.Reason(), "closed the port") {
		t.Errorf("reason %q", k.capture.Reason())
	}
	if err := k.capture.Close(); err != nil {
		t.Error(err)
	}
}

// TestCaptureWaitsForThePort: the capture begins with the first packet after
// the port opens. A wait that is given up makes room for the next.
func TestCaptureWaitsForThePort(t *testing.T) {
	o := newBrokerOf(t)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	two := make(chan error, 2)
	for range 2 {
		go func() {
			_, err := o.client.Capture(ctx, "", "f", "a", 0)
			two <- err
		}()
	}
	if err := <-two; err == nil || !strings.Contains(err.Error(), "already") {
		t.Errorf("the second capture of one port: %v", err)
	}
	cancel()
	if err := <-two; !errors.Is(err, context.Canceled) {
		t.Errorf("after giving up: %v", err)
	}
	first, second := o.capture("a", 0), o.capture("a", 0)
	var refused started
	var done <-chan started // the one that waits, since the other was refused
	select {
	case refused = <-first:
		done = second
	case refused = <-second:
		done = first
	}
	if refused.err == nil || !strings.Contains(refused.err.Error(), "already") {
		t.Fatalf("a port can be captured at once after a wait was given up: %v", refused.err)
	}
	o.open(wire.FeaturesKnown)
	o.once(done) // the first message after WELCOME
	o.stopped()
}

// TestCapturesFollowEachOther: when Close returns, the port can be captured again.
func TestCapturesFollowEachOther(t *testing.T) {
	o := newOnlooker(t)
	for n := range 50 {
		done := o.capture("a", 0)
		if n > 0 {
			o.stopped()
		}
		o.once(done)
	}
	o.stopped()
}

func TestCaptureRefused(t *testing.T) {
	o := newOnlooker(t)
	for name, c := range map[string]struct {
		port    string
		snaplen int
		want    string
	}{
		"unknown":  {"c", 0, "no native port"},
		"snaplen":  {"a", 1 << 20, "262144"},
		"negative": {"a", -1, "not -1"},
	} {
		if k := <-o.capture(c.port, c.snaplen); k.err == nil || !strings.Contains(k.err.Error(), c.want) {
			t.Errorf("%s: %v; want an error that says %q", name, k.err, c.want)
		}
	}
	if _, err := o.client.Capture(context.Background(), "another", "f", "a", 0); err == nil || !strings.Contains(err.Error(), "no native port") {
		t.Errorf("a port of another link: %v", err)
	}
	done := o.capture("a", 0)
	_, memory := o.accept(unix.ENOMEM)
	unix.Close(memory)
	if k := <-done; k.err == nil || !strings.Contains(k.err.Error(), "cannot allocate memory") {
		t.Errorf("an end without memory: %v", k.err)
	}
	o.stopped()
}

func TestCaptureOfAnOldEnd(t *testing.T) {
	o := newBrokerOf(t)
	o.open(wire.FeaturesKnown &^ wire.FeatureCapture)
	if k := <-o.capture("a", 0); k.err == nil || !strings.Contains(k.err.Error(), "too old to capture") {
		t.Errorf("error %v", k.err)
	}
}

// TestCaptureUnanswered: a stopped end blocks nobody forever, and its late
// answer does no harm.
func TestCaptureUnanswered(t *testing.T) {
	o := newOnlooker(t)
	k := <-o.capture("a", 0)
	if k.err == nil || !strings.Contains(k.err.Error(), "does not respond") {
		t.Errorf("error %v", k.err)
	}
	_, memory := o.accept(0)
	unix.Close(memory)
	o.stopped()
	done := o.capture("a", 0)
	_, memory = o.accept(0)
	unix.Close(memory)
	if k = <-done; k.err != nil {
		t.Fatal(k.err)
	}
	if err := k.capture.Close(); err != nil {
		t.Error(err)
	}
	o.stopped()
}

func TestCaptureShape(t *testing.T) {
	for _, snaplen := range []int{1, 32, 1518, 9018, 65535, wire.CaptureSnaplenMax} {
		for queues := 1; queues <= wire.MaxQueues; queues++ {
			c, err := captureShape(snaplen, queues)
			if err != nil {
				t.Errorf("snaplen %d, %d queues: %v", snaplen, queues, err)
				continue
			}
			m := wire.Message{Type: wire.TypeCapture, Body: &c}
			if _, err := wire.Parse(m.Marshal(), 1, wire.FromBroker); err != nil {
				t.Errorf("snaplen %d, %d queues: an end refuses %+v", snaplen, queues, c)
			}
			if c.Size > captureTotal && c.Slots > wire.CaptureSlotsMin {
				t.Errorf("snaplen %d, %d queues: %d bytes", snaplen, queues, c.Size)
			}
		}
	}
}
