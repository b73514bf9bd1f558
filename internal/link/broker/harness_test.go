// SPDX-License-Identifier: Apache-2.0

package broker_test

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/drayage/dray/internal/link/broker"
	"github.com/drayage/dray/internal/link/broker/wire"
	"github.com/drayage/dray/test/testenv"
)

// brokerEnv makes the test program a broker of the directory in its value.
const brokerEnv = "DRAY_TEST_BROKER"

// holderEnv makes the test program open the port at the socket in its value,
// and exit while one of its children holds the connection.
const holderEnv = "DRAY_TEST_HOLDER"

func hold(path string) error {
	fd, err := connect(path)
	if err != nil {
		return err
	}
	r := &raw{fd: fd, port: filepath.Base(path), wait: patience}
	if err := r.send(r.helloMessage(nil).Marshal()); err != nil {
		return err
	}
	if m, _, err := r.receive(); err != nil || m.Type != wire.TypeWelcome {
		return fmt.Errorf("instead of WELCOME: %+v, %w", m, err)
	}
	child := exec.Command("sleep", "60")
	child.ExtraFiles = []*os.File{os.NewFile(uintptr(fd), "connection")}
	if err := child.Start(); err != nil {
		return err
	}
	fmt.Println(child.Process.Pid)
	return nil
}

func TestMain(m *testing.M) {
	if dir := os.Getenv(brokerEnv); dir != "" {
		ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
		o := broker.Options{Dir: dir, Log: os.Stderr, Ready: func() { fmt.Println("ready") }}
		err := broker.Serve(ctx, o.Within(broker.Patient))
		stop()
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	if path := os.Getenv(holderEnv); path != "" {
		if err := hold(path); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	code := m.Run()
	if program.dir != "" {
		os.RemoveAll(program.dir)
	}
	os.Exit(code)
}

// patience bounds a test's wait for steps that take milliseconds on an idle machine.
const patience = 30 * time.Second

func until(t testing.TB, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !holds(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("after %s: still not %s", patience, what)
		}
	}
}

// fixture is a broker's directory and the ports of its links.
type fixture struct {
	t   testing.TB
	dir string
	log *lockedBuffer
	// timeouts are those of a broker in this process.
	timeouts broker.Timeouts
}

func newFixture(t testing.TB) *fixture {
	t.Helper()
	dir, err := os.MkdirTemp("", "dray-broker-")
	testenv.Must(t, err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	return &fixture{t: t, dir: dir, log: new(lockedBuffer), timeouts: broker.Patient}
}

func (s *fixture) state() string { return filepath.Join(s.dir, "broker") }

// link is a link of two ports, each in its own directory.
func (s *fixture) link(name string) broker.Link {
	s.t.Helper()
	l := broker.Link{Name: name, Kind: broker.KindShm, Slots: 64, SampleShift: 4}
	for i, function := range []string{"du", "cu"} {
		ports := filepath.Join(s.dir, function)
		testenv.Must(s.t, os.MkdirAll(ports, 0o711))
		l.Ends = append(l.Ends, broker.End{
			Function: function, Port: name, Socket: filepath.Join(ports, name), Owner: os.Getuid(), MTU: 1500,
			MAC: net.HardwareAddr{2, 0, 0, 0, 0, byte(i + 1)}, IP: netip.MustParsePrefix(fmt.Sprintf("10.0.0.%d/24", i+1)),
		})
	}
	return l
}

// serve runs a broker in this process, until stop or the end of the test.
func (s *fixture) serve() (client *broker.Client, stop func()) {
	s.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ready, done := make(chan struct{}), make(chan error, 1)
	go func() {
		o := broker.Options{Dir: s.state(), Log: s.log, Ready: func() { close(ready) }}
		done <- broker.Serve(ctx, o.Within(s.timeouts))
	}()
	select {
	case <-ready:
	case err := <-done:
		cancel()
		s.t.Fatalf("broker: %v", err)
	}
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			s.t.Errorf("broker: %v", err)
		}
		if s.t.Failed() {
			s.t.Logf("the broker's log:\n%s", s.log)
		}
	})
	s.t.Cleanup(stop)
	return s.dial(), stop
}

// serveLink runs a broker with the link "f1u" in this process.
func serveLink(t testing.TB) (*fixture, *broker.Client, broker.Link) {
	t.Helper()
	return serveLinkWithin(t, broker.Patient)
}

// serveLinkWithin does so with other timeouts.
func serveLinkWithin(t testing.TB, timeouts broker.Timeouts) (*fixture, *broker.Client, broker.Link) {
	t.Helper()
	s := newFixture(t)
	s.timeouts = timeouts
	c, _ := s.serve()
	l := s.link("f1u")
	s.add(c, l)
	return s, c, l
}

func (s *fixture) dial() *broker.Client {
	s.t.Helper()
	c, err := broker.Dial(s.state())
	testenv.Must(s.t, err)
	return c
}

// spawn runs a broker in a separate process.
func (s *fixture) spawn() (*broker.Client, *process) {
	s.t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), brokerEnv+"="+s.state())
	cmd.Stderr = s.log
	out, err := cmd.StdoutPipe()
	testenv.Must(s.t, err)
	p := start(s.t, cmd)
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "ready\n" {
		s.t.Fatalf("the broker said %q, %v: %s", line, err, s.log)
	}
	return s.dial(), p
}

func (s *fixture) add(c *broker.Client, l broker.Link) {
	s.t.Helper()
	testenv.Must(s.t, c.Add(context.Background(), l))
}

// status is the status of one link. On a busy machine a late one comes first.
func (s *fixture) status(c *broker.Client, name string) (st broker.LinkStatus) {
	s.t.Helper()
	until(s.t, "a status in time", func() bool {
		all, err := c.Status(context.Background())
		testenv.Must(s.t, err)
		at := slices.IndexFunc(all, func(l broker.LinkStatus) bool { return l.Name == name })
		if at < 0 {
			s.t.Fatalf("no link %s in %+v", name, all)
		}
		st = all[at]
		return !st.Late
	})
	return st
}

// active waits until both ends have told the broker that they are live. Packets pass before
// that, and before the generation is in the journal.
func (s *fixture) active(c *broker.Client, name string) (st broker.LinkStatus) {
	s.t.Helper()
	until(s.t, "active", func() bool {
		st = s.status(c, name)
		return st.State == broker.StateActive
	})
	return st
}

// process is a child that is killed at the end of the test.
type process struct {
	*exec.Cmd
	t      testing.TB
	exited chan struct{}
	err    error
}

func start(t testing.TB, cmd *exec.Cmd) *process {
	t.Helper()
	testenv.Must(t, cmd.Start())
	p := &process{Cmd: cmd, t: t, exited: make(chan struct{})}
	go func() {
		p.err = cmd.Wait()
		close(p.exited)
	}()
	t.Cleanup(p.kill)
	return p
}

// kill sends SIGKILL to the process, and waits until it is gone.
func (p *process) kill() {
	_ = p.Process.Kill()
	<-p.exited
}

// end asks the process to exit, and fails the test if it does not exit cleanly.
func (p *process) end() {
	p.t.Helper()
	_ = p.Process.Signal(syscall.SIGTERM)
	select {
	case <-p.exited:
	case <-time.After(patience):
		p.t.Fatalf("%v does not exit", p.Args)
	}
	if p.err != nil {
		p.t.Errorf("%v: %v", p.Args, p.err)
	}
}

// program is testdata/end.c with libdray, built once.
var program struct {
	sync.Once
	dir string
	err error
}

func endProgram(t testing.TB) string {
	t.Helper()
	testenv.Program(t, "gcc")
	program.Do(func() {
		program.dir, program.err = os.MkdirTemp("", "dray-broker-end-")
		if program.err != nil {
			return
		}
		const port = "../../../dataplane/port/"
		sources, _ := filepath.Glob(port + "src/*.c")
		nested, _ := filepath.Glob(port + "src/*/*.c")
		sources = append(sources, nested...)
		args := append([]string{"-std=gnu11", "-O2", "-D_GNU_SOURCE", `-DDRAY_VERSION="test"`, "-pthread", "-I" + port + "include",
			"-I" + port + "src", "testdata/end.c", "-o", filepath.Join(program.dir, "end")}, sources...)
		if out, err := exec.Command("gcc", args...).CombinedOutput(); err != nil {
			program.err = fmt.Errorf("gcc: %w\n%s", err, out)
		}
	})
	if program.err != nil {
		t.Fatal(program.err)
	}
	return filepath.Join(program.dir, "end")
}

// peer is a running end of a link, in C.
type peer struct {
	*process
	file string
}

// join starts an end of a link; role is "send", "queue" (for a port with traffic classes)
// or "recv".
func (s *fixture) join(e broker.End, role string) *peer {
	s.t.Helper()
	f, err := os.CreateTemp(s.dir, "seen-")
	testenv.Must(s.t, err)
	f.Close()
	cmd := exec.Command(endProgram(s.t), filepath.Dir(e.Socket), e.Port, role, f.Name(), "200")
	cmd.Stderr = s.log
	return &peer{start(s.t, cmd), f.Name()}
}

// seen is the report file of an end.
type seen struct {
	Packets, Wrong, Generation, Kind, Broker, Stream, Count, Streams, Rebinds, Stamps, Unordered uint64
}

func (p *peer) seen() seen {
	p.t.Helper()
	var s seen
	f, err := os.Open(p.file)
	testenv.Must(p.t, err)
	defer f.Close()
	if err := binary.Read(f, binary.LittleEndian, &s); err != nil && !errors.Is(err, io.EOF) {
		p.t.Fatal(err)
	}
	return s
}

// flows waits for that many more packets.
func (p *peer) flows(packets uint64) {
	p.t.Helper()
	from := p.seen().Packets
	until(p.t, fmt.Sprintf("%d packets more", packets), func() bool { return p.seen().Packets >= from+packets })
}

// lockedBuffer keeps the first part of the data written to it.
type lockedBuffer struct {
	mu sync.Mutex
	b  []byte
}

func (l *lockedBuffer) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.b) < 1<<16 {
		l.b = append(l.b, b...)
	}
	return len(b), nil
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return string(l.b)
}
