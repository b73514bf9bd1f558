// SPDX-License-Identifier: Apache-2.0

package meet

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// fixture is a broker with a meeting of two pods, whose directories hold a door each.
type fixture struct {
	t    *testing.T
	dir  string
	want []Meeting
	stop func()
}

func newFixture(t *testing.T) *fixture {
	dir, err := os.MkdirTemp("", "dray-meet-") // a socket's path has at most 108 bytes
	must(t, err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	f := &fixture{t: t, dir: dir}
	var m Meeting
	for i, pod := range []string{"a", "b"} {
		must(t, os.Mkdir(filepath.Join(dir, pod), 0o755))
		m.Ends[i] = End{Socket: f.door(pod), User: os.Getuid()}
	}
	m.Name = "ran/c/l"
	f.want = []Meeting{m}
	f.serve()
	return f
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func (f *fixture) door(pod string) string { return filepath.Join(f.dir, pod, "n3") }

// serve starts a broker, and has it arrange the meeting.
func (f *fixture) serve() {
	f.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- Serve(ctx, f.dir, slog.New(slog.DiscardHandler)) }()
	stopped := false
	f.stop = func() {
		if !stopped {
			stopped = true
			cancel()
			must(f.t, <-done)
		}
	}
	f.t.Cleanup(f.stop)
	f.apply(f.want)
}

func (f *fixture) apply(all []Meeting) {
	f.t.Helper()
	var faults map[string]string
	err := ErrAbsent
	for i := 0; i < 3000 && errors.Is(err, ErrAbsent); i++ {
		faults, err = Apply(context.Background(), f.dir, all)
		time.Sleep(10 * time.Millisecond)
	}
	if err != nil || len(faults) > 0 {
		f.t.Fatalf("%v, %v", faults, err)
	}
}

// listener is a pod that listens at a path of its own and shows that.
type listener struct {
	path string
	l    net.Listener
	stop func()
}

func (f *fixture) listener(name string) *listener {
	f.t.Helper()
	s := &listener{path: filepath.Join(f.dir, name)}
	var err error
	s.l, err = net.Listen("unixpacket", s.path)
	must(f.t, err)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() {
		ended <- Show(ctx, f.door("a"), s.path, func(context.Context) error { return nil })
	}()
	stopped := false
	s.stop = func() {
		if !stopped {
			stopped = true
			cancel()
			must(f.t, errors.Join(<-ended, s.l.Close()))
		}
	}
	f.t.Cleanup(s.stop)
	return s
}

func (f *fixture) look() *Shown {
	f.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	s, err := Look(ctx, f.door("b"))
	must(f.t, err)
	f.t.Cleanup(func() { _ = s.Close() })
	return s
}

// reaches connects to the socket as an application does that gets its descriptor.
func (f *fixture) reaches(s *Shown, want *listener) {
	f.t.Helper()
	c, err := net.Dial("unixpacket", ProcPath(int(s.Socket.Fd())))
	must(f.t, err)
	defer c.Close()
	got, err := want.l.Accept()
	must(f.t, err)
	must(f.t, got.Close())
	if s.Path != want.path {
		f.t.Errorf("it is at %q, want %q", s.Path, want.path)
	}
}

func TestTwoPodsMeet(t *testing.T) {
	f := newFixture(t)
	looked := make(chan *Shown)
	go func() { looked <- f.look() }() // the first caller waits
	time.Sleep(3 * pause)
	a := f.listener("first")
	f.reaches(<-looked, a)
}

// The pod that looks learns that the other has ended, and finds the next one.
func TestTheOtherIsReplaced(t *testing.T) {
	f := newFixture(t)
	first := f.listener("first")
	s := f.look()
	gone := make(chan struct{})
	go func() { s.Gone(context.Background()); close(gone) }()
	select {
	case <-gone:
		t.Fatal("gone before it has ended")
	case <-time.After(3 * pause):
	}
	first.stop()
	<-gone
	second := f.listener("second")
	f.reaches(f.look(), second)
}

// Pods that have met need no broker, and meet again at the next one.
func TestTheBrokerIsReplaced(t *testing.T) {
	f := newFixture(t)
	a := f.listener("first")
	before := f.look()
	f.stop()
	f.reaches(before, a)
	ctx, cancel := context.WithTimeout(context.Background(), 3*pause)
	defer cancel()
	before.Gone(ctx)
	if ctx.Err() == nil {
		t.Error("the connection of the two ended with the broker")
	}
	f.serve()
	f.reaches(f.look(), a)
}

// What is shown can be connected to, and nothing else: the directory and the socket stay as they are.
func TestOnlyTheSocketIsShown(t *testing.T) {
	f := newFixture(t)
	a := f.listener("first")
	s := f.look()
	fd := int(s.Socket.Fd())
	for what, err := range map[string]error{
		"unlink":      unix.Unlinkat(fd, "", 0),
		"parent":      unix.Unlinkat(fd, "../first", 0),
		"make a file": unix.Mknodat(fd, "x", unix.S_IFREG|0o600, 0),
		"change mode": unix.Fchmod(fd, 0),
	} {
		if err == nil {
			t.Errorf("%s: permitted", what)
		}
	}
	f.reaches(s, a)
}

// A claim that has gone leaves no socket, and its pod's connections end.
func TestAMeetingEnds(t *testing.T) {
	f := newFixture(t)
	f.listener("first")
	c, err := net.Dial("unixpacket", f.door("b"))
	must(t, err)
	defer c.Close()
	f.apply(nil)
	for _, pod := range []string{"a", "b"} {
		if _, err := os.Lstat(f.door(pod)); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s: %v", pod, err)
		}
	}
	must(t, c.SetReadDeadline(time.Now().Add(time.Minute)))
	for err == nil {
		_, err = c.Read(make([]byte, 1))
	}
	if !errors.Is(err, io.EOF) && !errors.Is(err, unix.ECONNRESET) {
		t.Errorf("the connection: %v", err)
	}
}

// Ends that never read what they are given cost the broker no more than a descriptor each, and
// do not keep others from meeting.
func TestAnEndThatNeverReads(t *testing.T) {
	f := newFixture(t)
	deaf, err := net.Dial("unixpacket", f.door("a"))
	must(t, err)
	defer deaf.Close()
	var greedy []net.Conn
	for range 3 * guestsMax { // those that find no room wait in the kernel, or are refused by it
		c, err := net.Dial("unixpacket", f.door("b"))
		if err != nil {
			break
		}
		greedy = append(greedy, c)
	}
	if len(greedy) < guestsMax {
		t.Fatalf("only %d connections", len(greedy))
	}
	introduced := 0
	for deadline := time.Now().Add(time.Minute); introduced == 0 && time.Now().Before(deadline); {
		time.Sleep(10 * pause) // more are introduced meanwhile, if any are
		for _, c := range greedy {
			introduced += unread(t, c)
		}
	}
	if introduced != 1 {
		t.Errorf("%d were introduced to an end that does not read, want 1", introduced)
	}
	for _, c := range greedy {
		must(t, c.Close())
	}
	must(t, deaf.Close())
	first := f.listener("first")
	f.reaches(f.look(), first)
}

// unread is 1 if a message waits at a connection.
func unread(t *testing.T, c net.Conn) (n int) {
	t.Helper()
	raw, err := c.(*net.UnixConn).SyscallConn()
	must(t, err)
	must(t, raw.Control(func(fd uintptr) {
		n, err = unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 0)
	}))
	must(t, err)
	return n
}

// What an end sends is refused: it could hold descriptors whose close blocks.
func TestTheBrokerTakesNothing(t *testing.T) {
	f := newFixture(t)
	c, err := net.Dial("unixpacket", f.door("a"))
	must(t, err)
	defer c.Close()
	for range 1000 {
		if _, err = c.Write([]byte("x")); err != nil {
			break
		}
		time.Sleep(pause)
	}
	if !errors.Is(err, unix.EPIPE) {
		t.Errorf("%v", err)
	}
}
