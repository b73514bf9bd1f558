// SPDX-License-Identifier: Apache-2.0

package broker_test

import (
	"errors"
	"io"
	"net"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/drayage/dray/internal/link/broker"
	"github.com/drayage/dray/internal/link/broker/wire"
	"github.com/drayage/dray/test/testenv"
)

// raw is an end that sends what the test wants.
type raw struct {
	t    testing.TB
	fd   int
	port string
	wait time.Duration // for the next message
	fds  []int         // received; closed after the test
}

func (s *fixture) raw(e broker.End) *raw {
	s.t.Helper()
	fd, err := connect(e.Socket)
	testenv.Must(s.t, err)
	r := &raw{t: s.t, fd: fd, port: e.Port, wait: patience}
	s.t.Cleanup(r.hangUp)
	return r
}

func connect(path string) (int, error) {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return -1, err
	}
	if err := unix.Connect(fd, &unix.SockaddrUnix{Name: path}); err != nil {
		unix.Close(fd)
		return -1, err
	}
	return fd, nil
}

func (r *raw) hangUp() {
	if r.fd >= 0 {
		unix.Close(r.fd)
	}
	r.fd = -1
	r.letGo()
}

// letGo closes the received descriptors.
func (r *raw) letGo() {
	closeFDs(r.fds)
	r.fds = nil
}

func closeFDs(fds []int) {
	for _, fd := range fds {
		unix.Close(fd)
	}
}

func (r *raw) send(b []byte, fds ...int) error {
	var rights []byte
	if len(fds) > 0 {
		rights = unix.UnixRights(fds...)
	}
	return unix.Sendmsg(r.fd, b, rights, nil, unix.MSG_NOSIGNAL)
}

func (r *raw) say(m wire.Message, fds ...int) {
	r.t.Helper()
	if err := r.send(m.Marshal(), fds...); err != nil {
		r.t.Fatalf("send message %d: %v", m.Type, err)
	}
}

func (r *raw) helloMessage(change func(*wire.Hello)) wire.Message {
	h := &wire.Hello{Features: wire.FeaturesKnown, Mode: wire.ModeSleeping, Clock: wire.ClockCounter, TickHz: 2e9}
	copy(h.Port[:], r.port)
	if change != nil {
		change(h)
	}
	return wire.Message{Type: wire.TypeHello, Body: h}
}

func (r *raw) hello(change func(*wire.Hello)) {
	r.t.Helper()
	r.say(r.helloMessage(change))
}

// greet says HELLO, and returns the WELCOME with its descriptors.
func (r *raw) greet() (wire.Message, []int) {
	r.t.Helper()
	r.hello(nil)
	return r.expect(wire.TypeWelcome)
}

// welcomed connects to a port, up to WELCOME.
func (s *fixture) welcomed(e broker.End) *raw {
	s.t.Helper()
	r := s.raw(e)
	r.greet()
	return r
}

var errHungUp = errors.New("hung up")

// receive reads the next message.
func (r *raw) receive() (wire.Message, []int, error) {
	tv := unix.NsecToTimeval(r.wait.Nanoseconds())
	if err := unix.SetsockoptTimeval(r.fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &tv); err != nil {
		return wire.Message{}, nil, err
	}
	b, rights := make([]byte, wire.MaxMessage), make([]byte, unix.CmsgSpace(4*wire.MaxFDs))
	n, rn, _, _, err := unix.Recvmsg(r.fd, b, rights, unix.MSG_CMSG_CLOEXEC)
	for errors.Is(err, unix.EINTR) { // a call with a timeout is not restarted
		n, rn, _, _, err = unix.Recvmsg(r.fd, b, rights, unix.MSG_CMSG_CLOEXEC)
	}
	if err != nil {
		return wire.Message{}, nil, err
	}
	if n == 0 {
		return wire.Message{}, nil, errHungUp
	}
	var fds []int
	if messages, err := unix.ParseSocketControlMessage(rights[:rn]); err == nil && len(messages) == 1 {
		fds, _ = unix.ParseUnixRights(&messages[0])
	}
	r.fds = append(r.fds, fds...)
	m, err := wire.Parse(b[:n], len(fds), wire.FromBroker)
	return m, fds, err
}

// expect reads the next message, which must be of that type. It skips STATS.
func (r *raw) expect(want wire.Type) (wire.Message, []int) {
	r.t.Helper()
	for {
		m, fds, err := r.receive()
		if err != nil {
			r.t.Fatalf("instead of message %d: %v", want, err)
		}
		if m.Type == wire.TypeStats && want != wire.TypeStats {
			continue
		}
		if m.Type != want {
			r.t.Fatalf("message %d instead of %d: %+v", m.Type, want, m.Body)
		}
		return m, fds
	}
}

// refused expects an ERROR, then a hang-up.
func (r *raw) refused(code unix.Errno) string {
	r.t.Helper()
	m, _ := r.expect(wire.TypeError)
	e := m.Body.(*wire.Error)
	if unix.Errno(e.Code) != code {
		r.t.Errorf("refused with %v (%s), not %v", unix.Errno(e.Code), wire.Text(e.Text[:]), code)
	}
	if _, _, err := r.receive(); !errors.Is(err, errHungUp) && !errors.Is(err, unix.ECONNRESET) {
		r.t.Errorf("after ERROR: %v", err)
	}
	return wire.Text(e.Text[:])
}

// offered sends HELLO and reads up to OFFER, which it returns with its memfd.
func (r *raw) offered() (uint32, *wire.Offer, int) {
	r.t.Helper()
	r.greet()
	return r.nextOffer()
}

func (r *raw) nextOffer() (uint32, *wire.Offer, int) {
	r.t.Helper()
	m, fds := r.expect(wire.TypeOffer)
	return m.Generation, m.Body.(*wire.Offer), fds[0]
}

func (r *raw) mapped(generation uint32, memfd int) {
	r.t.Helper()
	var st unix.Stat_t
	testenv.Must(r.t, unix.Fstat(memfd, &st))
	r.say(wire.Message{Type: wire.TypeMapped, Generation: generation, Body: &wire.Mapped{Inode: st.Ino}})
}

func (r *raw) active(generation uint32) {
	r.t.Helper()
	r.say(wire.Message{Type: wire.TypeActive, Generation: generation})
}

// join takes both ends of a link through the whole handshake.
func (s *fixture) joinRaw(l broker.Link) (a, b *raw, generation uint32, memfd int) {
	s.t.Helper()
	a, b = s.raw(l.Ends[0]), s.raw(l.Ends[1])
	a.greet()
	b.greet()
	generation, _, memfd = a.nextOffer()
	b.nextOffer()
	for _, r := range []*raw{a, b} {
		r.mapped(generation, memfd)
	}
	for _, r := range []*raw{a, b} {
		r.expect(wire.TypeSealed)
		r.active(generation)
	}
	return a, b, generation, memfd
}

func within(t testing.TB, d time.Duration, what string, f func()) {
	t.Helper()
	done := make(chan struct{})
	go func() { f(); close(done) }()
	select {
	case <-done:
	case <-time.After(d):
		t.Errorf("%s takes longer than %s", what, d)
		<-done
	}
}

// ask sends a text to a control socket, and returns the answer.
func ask(t testing.TB, path, text string) string {
	t.Helper()
	conn, err := net.Dial("unix", path)
	testenv.Must(t, err)
	defer conn.Close()
	testenv.Must(t, conn.SetDeadline(time.Now().Add(patience)))
	_, _ = io.WriteString(conn, text) // the broker does not read all of an overlong request
	b, _ := io.ReadAll(conn)
	return string(b)
}
