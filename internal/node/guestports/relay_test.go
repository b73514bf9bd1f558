// SPDX-License-Identifier: Apache-2.0

package guestports

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
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/drayage/dray/internal/function/guest"
	"github.com/drayage/dray/internal/link/broker"
	"github.com/drayage/dray/test/testenv"
)

const patience = 30 * time.Second

// fake is a machine without QEMU: its windows hold files, which programs map instead of a
// device. free says that they have left it.
type fake struct {
	mu      sync.Mutex
	windows map[int]int // file descriptors
	free    func(window int) bool
	plugged int
}

func (f *fake) plug(_ context.Context, window, file int, _ uint64) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if _, full := f.windows[window]; full {
		return errors.New("duplicate")
	}
	own, err := unix.Dup(file)
	f.windows[window] = own
	f.plugged++
	return err
}

func (f *fake) unplug(_ context.Context, window int) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	fd, full := f.windows[window]
	if !full {
		return errors.New("empty")
	}
	delete(f.windows, window)
	return unix.Close(fd)
}

func (f *fake) open(window int, _ uint64) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	fd, full := f.windows[window]
	if !full {
		return -1, errors.New("empty")
	}
	return unix.Dup(fd)
}

func (f *fake) left(window int) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	_, full := f.windows[window]
	return full && f.free(window)
}

func (f *fake) count() (full, plugged int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.windows), f.plugged
}

// rig is a link of a port behind both relays, and one at the broker itself.
type rig struct {
	t             *testing.T
	inside, there string // directories of the ports' sockets
	broker        string
	machine       *fake
}

func newRig(t *testing.T) *rig {
	t.Helper()
	testenv.Root(t)
	dir, err := os.MkdirTemp("", "dray-guestports-")
	testenv.Must(t, err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	r := &rig{t: t, inside: filepath.Join(dir, "in"), there: filepath.Join(dir, "b"), broker: filepath.Join(dir, "broker"),
		machine: &fake{windows: map[int]int{}, free: func(int) bool { return true }}}
	ctx, cancel := context.WithCancel(context.Background())
	ready, ended := make(chan struct{}), make(chan error, 1)
	go func() {
		ended <- broker.Serve(ctx, broker.Options{Dir: r.broker, Log: io.Discard, Ready: func() { close(ready) }})
	}()
	t.Cleanup(func() { cancel(); testenv.Must(t, <-ended) })
	<-ready
	l := broker.Link{Name: "l", Kind: broker.KindShm, Machine: true}
	for i, d := range []string{filepath.Join(dir, "a"), r.there} {
		testenv.Must(t, os.Mkdir(d, 0o700))
		l.Ends = append(l.Ends, broker.End{Function: "f", Port: "p0", Socket: filepath.Join(d, "p0"), MTU: 1500, MAC: net.HardwareAddr{2, 0, 0, 0, 0, byte(i)}})
	}
	client, err := broker.Dial(r.broker)
	testenv.Must(t, err)
	testenv.Must(t, client.Add(ctx, l))
	r.join([]guest.Port{{Name: "p0", Socket: l.Ends[0].Socket, Windows: []int{0, 1}}})
	return r
}

// join runs both relays, joined by pipes as by a guest's agent.
func (r *rig) join(ports []guest.Port) {
	r.t.Helper()
	toGuest, fromHost := io.Pipe()
	toHost, fromGuest := io.Pipe()

	host := newRelay(r.machine, fromHost, ports)
	began, ended := make(chan struct{}), make(chan error, 2)
	go func() { ended <- host.serve(toHost, began) }()
	go func() { ended <- inside(toGuest, fromGuest, r.inside, r.machine) }()
	select {
	case <-began:
	case err := <-ended:
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { fromHost.Close(); fromGuest.Close(); <-ended; <-ended })
}

// program starts draygen at a port in a directory.
func (r *rig) program(dir, role string, args ...string) *exec.Cmd {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	r.t.Cleanup(cancel)
	cmd := exec.CommandContext(ctx, testenv.Built(r.t, "draygen"), append([]string{role, "--port", "dray:p0"}, args...)...)
	cmd.Env = append(os.Environ(), "DRAY_PORTS="+dir)
	cmd.Stderr = os.Stderr
	return cmd
}

// sunk is a sink's result.
type sunk struct {
	Received, Corrupt, Duplicates, Reordered int
	Link                                     struct {
		Kind       string
		Generation int
	}
}

// stream sends 5000 packets from one directory's port to the other's.
func (r *rig) stream(from, to string, mode ...string) sunk {
	r.t.Helper()
	sink := r.program(to, "sink", append([]string{"--once", "--duration", "20s"}, mode...)...)
	out, err := sink.StdoutPipe()
	testenv.Must(r.t, err)
	testenv.Must(r.t, sink.Start())
	defer func() { _ = sink.Wait() }()
	lines := bufio.NewReader(out)
	if line, err := lines.ReadString('\n'); err != nil {
		r.t.Fatalf("the sink is not ready: %q, %v", line, err)
	}
	if text, err := r.program(from, "send", "--check", "--packets", "5000", "--rate", "20kpps", "--catch-up", "20s").Output(); err != nil {
		r.t.Fatalf("the sender: %v: %s", err, text)
	}
	var s sunk
	line, err := lines.ReadString('\n')
	if err != nil || json.Unmarshal([]byte(line), &s) != nil {
		r.t.Fatalf("the sink ends with %q, %v", line, err)
	}
	return s
}

func (r *rig) wantWhole(s sunk) {
	r.t.Helper()
	if s.Received != 5000 || s.Corrupt+s.Duplicates+s.Reordered > 0 || s.Link.Kind != "shm" {
		r.t.Errorf("the sink saw %+v", s)
	}
}

func (r *rig) until(what string, holds func() bool) {
	r.t.Helper()
	for deadline := time.Now().Add(patience); !holds(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			r.t.Fatalf("not %s after %v: %+v", what, patience, r.link())
		}
	}
}

// TestRelaysPassPackets both ways, and leave no memory in the machine.
func TestRelaysPassPackets(t *testing.T) {
	r := newRig(t)
	r.wantWhole(r.stream(r.inside, r.there))
	r.wantWhole(r.stream(r.there, r.inside))
	r.until("unplugged", func() bool { full, plugged := r.machine.count(); return full == 0 && plugged >= 2 })
}

// TestProgramOfTheGuestDies: the peer goes on, and the next program meets it in new memory.
// Memory that a program still maps stays, in its window.
func TestProgramOfTheGuestDies(t *testing.T) {
	r := newRig(t)
	var mu sync.Mutex
	held := map[int]bool{}
	r.machine.free = func(window int) bool { mu.Lock(); defer mu.Unlock(); return !held[window] }
	hold := func(window int, holds bool) { mu.Lock(); defer mu.Unlock(); held[window] = holds }
	sink := r.program(r.there, "sink", "--duration", "20s")
	testenv.Must(t, sink.Start())
	defer func() { _ = sink.Process.Kill(); _ = sink.Wait() }()
	for i := range 2 { // both windows stay full
		hold(i, true)
		sender := r.program(r.inside, "send", "--rate", "20kpps", "--duration", "20s")
		testenv.Must(t, sender.Start())
		r.until("active", func() bool { return r.link().State == broker.StateActive })
		testenv.Must(t, sender.Process.Kill())
		_ = sender.Wait()
		r.until("over", func() bool { return r.link().State == broker.StateHalf })
	}
	if full, plugged := r.machine.count(); full != 2 || plugged != 2 {
		t.Fatalf("%d windows are full after %d generations", full, plugged)
	}
	sender := r.program(r.inside, "send", "--rate", "20kpps", "--duration", "20s", "--catch-up", "20s")
	testenv.Must(t, sender.Start())
	defer func() { _ = sender.Process.Kill(); _ = sender.Wait() }()
	r.until("refused", func() bool { return r.link().LastError != "" })
	hold(0, false)
	r.until("active again", func() bool { return r.link().State == broker.StateActive })
}

// link is the link's state.
func (r *rig) link() broker.LinkStatus {
	r.t.Helper()
	client, err := broker.Dial(r.broker)
	testenv.Must(r.t, err)
	all, err := client.Status(context.Background())
	testenv.Must(r.t, err)
	return all[0]
}

// TestPeerDies: a program of the guest keeps its port, and meets the next peer.
func TestPeerDies(t *testing.T) {
	r := newRig(t)
	sink := r.program(r.inside, "sink", "--duration", "20s")
	testenv.Must(t, sink.Start())
	defer func() { _ = sink.Process.Kill(); _ = sink.Wait() }()
	for range 3 {
		sender := r.program(r.there, "send", "--rate", "20kpps", "--duration", "20s")
		testenv.Must(t, sender.Start())
		r.until("active", func() bool { return r.link().State == broker.StateActive })
		reported := func() bool { return r.link().Ends[0].Counters.RxPackets > 0 }
		r.until("reported", reported)
		testenv.Must(t, sender.Process.Kill())
		_ = sender.Wait()
		r.until("over", func() bool { return r.link().State == broker.StateHalf })
	}
	if l := r.link(); l.Rebinds < 3 || l.Ends[0].Refused != 0 {
		t.Errorf("the link is %+v", l)
	}
}

// TestHostileGuest: what is malformed ends the relay; what is only wrong does nothing.
func TestHostileGuest(t *testing.T) {
	good := []frame{
		{Kind: ring, Number: 7, Queue: 255}, {Kind: hangUp, Number: 7}, {Kind: free, Window: 99}, {Kind: free, Window: 1}, {Kind: closed, Number: 3},
		{Kind: telemetry, Data: make([]byte, 9)}, {Kind: opened, Number: 1}, {Kind: opened, Number: 1},
	}
	for name, bad := range map[string]frame{
		"a port that is none": {Kind: ring, Port: 1}, "no message": {Kind: message, Data: []byte("x")},
		"a frame of the host": {Kind: offer}, "ready twice": {Kind: ready}, "an unknown kind": {Kind: 99},
	} {
		t.Run(name, func(t *testing.T) {
			from, to := io.Pipe()
			host := newRelay(&fake{windows: map[int]int{}}, io.Discard, []guest.Port{{Name: "p0", Socket: "/nowhere/p0", Windows: []int{0, 1}}})
			ended := make(chan error, 1)
			go func() { ended <- host.serve(from, make(chan struct{})) }()
			out := &stream{out: to}
			for _, f := range append([]frame{{Kind: ready}}, append(good, bad)...) {
				testenv.Must(t, out.send(f))
			}
			if err := <-ended; !errors.Is(err, errFrame) {
				t.Errorf("the relay ended with %v", err)
			}
		})
	}
}

func FuzzFrames(f *testing.F) {
	var b bytes.Buffer
	testenv.Must(f, (&stream{out: &b}).send(frame{Kind: message, Data: []byte("x")}))
	f.Add(b.Bytes())
	f.Fuzz(func(t *testing.T, says []byte) {
		host := newRelay(&fake{windows: map[int]int{}}, io.Discard, []guest.Port{{Name: "p0", Socket: "/nowhere/p0", Windows: []int{0, 1}}})
		if err := host.serve(bytes.NewReader(says), make(chan struct{})); err == nil {
			t.Error("a stream that ends is no error")
		}
	})
}

// TestAGuestThatDoesNotRead: what waits for it is bounded.
func TestAGuestThatDoesNotRead(t *testing.T) {
	input, to := io.Pipe()
	s := &stream{out: to}
	results := make(chan error, 2*maxWaiting)
	for range cap(results) {
		go func() { results <- s.send(frame{Kind: closed}) }()
	}
	for range maxWaiting {
		if err := <-results; !errors.Is(err, errStalled) {
			t.Fatalf("beyond %d frames: error %v", maxWaiting, err)
		}
	}
	input.Close()
	for range maxWaiting {
		if err := <-results; !errors.Is(err, io.ErrClosedPipe) {
			t.Fatalf("a frame that waited: error %v", err)
		}
	}
}
