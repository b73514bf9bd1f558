// SPDX-License-Identifier: Apache-2.0

package transporttest

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/drayage/dray/internal/chain"
	"github.com/drayage/dray/internal/host"
	"github.com/drayage/dray/internal/testenv"
	"github.com/drayage/dray/internal/transport"
)

// RunNative runs the suite for links of which those ports are native, with the
// project's own generator as their application.
func RunNative(t *testing.T, d transport.Driver, native ...int) {
	require(t, d)
	draygen := testenv.Built(t, "draygen")
	openBefore, _ := leaks(t)
	o := Options{Native: native}
	t.Run("Caps", func(t *testing.T) { testCaps(t, d) })
	t.Run("SpecErrors", func(t *testing.T) { testSpecErrors(t, d, o) })
	t.Run("NativeErrors", func(t *testing.T) { testNativeErrors(t, d, o) })
	t.Run("Traffic", func(t *testing.T) { testNativeTraffic(t, d, draygen, o) })
	jumboOptions := o
	jumboOptions.MTU = jumbo
	t.Run("Jumbo", func(t *testing.T) { testNativeTraffic(t, d, draygen, jumboOptions) })
	t.Run("Parallel", func(t *testing.T) { testNativeParallel(t, d, draygen, o) })
	t.Run("Removal", func(t *testing.T) { testNativeRemoval(t, d, draygen, o) })
	t.Run("NoInterface", func(t *testing.T) { testNoInterface(t, d, o) })
	t.Run("Faults", func(t *testing.T) {
		RunFaults(t, func(t *testing.T) World { return NewRig(t, d, o) })
	})
	t.Run("Cancel", func(t *testing.T) { testCancel(t, d, o) })
	checkLeaks(t, openBefore)
}

// testNativeErrors checks that what a broker cannot serve is refused by Build.
func testNativeErrors(t *testing.T, d transport.Driver, o Options) {
	r := NewRig(t, d, o)
	for _, c := range []struct {
		name   string
		change func(*transport.Spec, *transport.End)
		want   string
	}{
		{"face", func(_ *transport.Spec, e *transport.End) { e.Face = "dpdk" }, "use face: "},
		{"no broker", func(s *transport.Spec, _ *transport.End) { s.Broker = "" }, "no broker serves native ports"},
		{"no socket", func(_ *transport.Spec, e *transport.End) { e.Socket = "" }, "must be absolute"},
		{"long path", func(_ *transport.Spec, e *transport.End) { e.Socket = "/" + strings.Repeat("x", 107) }, "set DRAY_STATE"},
		{"messages", func(s *transport.Spec, _ *transport.End) {
			s.Messages = &chain.Messages{Size: chain.Bytes(d.Caps().MaxMessage) + 1, Count: 1}
		}, "leave messages out, or lower their size"},
		{"queues", func(_ *transport.Spec, e *transport.End) { e.Queues = 17 }, "17 queues are more than the 16"},
	} {
		spec := r.Spec
		spec.Ends = slices.Clone(r.Spec.Ends)
		c.change(&spec, &spec.Ends[o.Native[0]])
		if _, err := d.Build(spec); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want one with %q", c.name, err, c.want)
		}
	}
	r.Clean("after Build has refused")
}

// testNativeTraffic passes packets of several sizes each way and checks that
// every one arrives whole, in order, and once.
func testNativeTraffic(t *testing.T, d transport.Driver, draygen string, o Options) {
	o.Queues = 2
	r := NewRig(t, d, o)
	r.Up()
	for _, size := range []int{100, r.Spec.MTU + 14} {
		r.generate(draygen, 0, 1, size)
		r.generate(draygen, 1, 0, size)
	}
}

// testNativeParallel makes two links with the same names at once.
func testNativeParallel(t *testing.T, d transport.Driver, draygen string, o Options) {
	a, b := NewRig(t, d, o), NewRig(t, d, o)
	a.Up()
	b.Up()
	a.generate(draygen, 0, 1, 500)
	b.generate(draygen, 0, 1, 500)
	if err := a.Remove(); err != nil {
		t.Fatal(err)
	}
	a.Clean("after the first link's removal")
	b.generate(draygen, 1, 0, 500)
}

// testNativeRemoval removes a link from its journal alone, twice, and makes it
// again; and removes it where its broker is dead.
func testNativeRemoval(t *testing.T, d transport.Driver, draygen string, o Options) {
	r := NewRig(t, d, o)
	for round := range 2 {
		r.Up()
		if r.state() == r.before {
			t.Fatal("a link that is up cannot be told from one that is not: the check for leftovers checks nothing")
		}
		r.generate(draygen, 0, 1, 100)
		for range 2 {
			if err := r.Remove(); err != nil {
				t.Fatalf("round %d: %v", round, err)
			}
		}
		r.Clean("after removal")
	}
	r.Up()
	r.stopBroker()
	if err := r.Remove(); err != nil {
		t.Errorf("with its broker dead: %v", err)
	}
	r.before = r.state() // what the broker serves is not in it any more
	if strings.Contains(r.before, "socket ") || strings.Contains(r.before, "link f1u") {
		t.Errorf("with its broker dead, something is left:\n%s", r.before)
	}
}

// testNoInterface checks that a function with a native port sees no interface,
// and no traffic that is not the port's.
func testNoInterface(t *testing.T, d transport.Driver, o Options) {
	r := NewRig(t, d, o)
	r.Up()
	for _, i := range o.Native {
		e := r.Spec.Ends[i]
		if s, err := e.Netns.ReadLink(e.Name); err == nil {
			t.Errorf("the function of native port %d has an interface: %+v", i, s)
		}
	}
	hidden, err := filepath.Glob(filepath.Join(r.Spec.Dir, "native*.net"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range hidden {
		s, err := host.Netns{Path: path}.ReadLink("f1u")
		if err != nil || !s.Up || len(s.Addrs) > 0 {
			t.Errorf("behind a native port: %+v, %v; want an interface that is up, without an address", s, err)
		}
	}
}

// generated is how many packets one run of the generator passes.
const generated = 2000

// outcome is what the generator's sink makes of them.
type outcome struct {
	Received, Corrupt, Reordered, Duplicates int
	Clean                                    bool
}

// generate passes packets of that size, in bytes of frame, from one end to the
// other. The generator sums each payload up. A packet that is lost, changed,
// doubled or out of order fails the test; but where the kernel carries packets,
// a busy receiver may lose some, and all have to arrive in one of several runs.
func (r *Rig) generate(draygen string, from, to, size int) {
	r.t.Helper()
	runs := 1
	if len(r.driver.Caps().Faces) > 1 {
		runs = 8
	}
	for run := 1; ; run++ {
		got, err := r.generateOnce(draygen, from, to, size)
		switch {
		case err != nil:
			r.t.Fatalf("%d bytes from end %d to end %d: %v", size, from+1, to+1, err)
		case got.Clean && got.Received == generated:
			return
		case got.Corrupt > 0 || got.Duplicates > 0 || run == runs:
			r.t.Fatalf("%d bytes from end %d to end %d: of %d packets arrived %+v, in run %d", size, from+1, to+1, generated, got, run)
		}
	}
}

func (r *Rig) generateOnce(draygen string, from, to, size int) (got outcome, err error) {
	sink := r.draygen(draygen, to, "sink", "--once", "--duration", "60s")
	out, err := sink.StdoutPipe()
	if err != nil {
		return got, err
	}
	if err := r.start(sink, to); err != nil {
		return got, err
	}
	lines := bufio.NewReader(out)
	if ready, err := lines.ReadString('\n'); err != nil {
		return got, fmt.Errorf("the sink is not ready: %w: %s%s", err, ready, sink.Stderr)
	}
	send := r.draygen(draygen, from, "send", "--check", "--packets", strconv.Itoa(generated),
		"--rate", "20kpps", "--catch-up", "10s", "--size", strconv.Itoa(size))
	send.Args = append(send.Args, r.destination(from, to)...)
	if err := r.start(send, from); err != nil {
		return got, err
	}
	if err := send.Wait(); err != nil {
		return got, fmt.Errorf("send: %w: %s", err, send.Stderr)
	}
	result, err := lines.ReadString('\n')
	if err := errors.Join(err, sink.Wait()); err != nil {
		return got, fmt.Errorf("sink: %w: %s", err, sink.Stderr)
	}
	return got, json.Unmarshal([]byte(result), &got)
}

// sinkPort is where a sink on an interface listens.
const sinkPort = 5010

// draygen is a call of the generator on the port of an end.
func (r *Rig) draygen(program string, end int, role string, args ...string) *exec.Cmd {
	e := r.Spec.Ends[end]
	port := "dray:" + e.Name
	if !e.Native() {
		port = "udp:" + netip.AddrPortFrom(e.IP.Addr(), sinkPort).String()
	}
	cmd := exec.Command(program, append([]string{role, "--port", port}, args...)...)
	cmd.Env = append(os.Environ(), "DRAY_PORTS="+filepath.Dir(e.Socket))
	cmd.Stderr = &bytes.Buffer{}
	return cmd
}

// destination is where packets go: a native port sends frames, which an
// interface takes if they are for its address.
func (r *Rig) destination(from, to int) []string {
	a, b := r.Spec.Ends[from], r.Spec.Ends[to]
	if a.Native() && b.Native() {
		return nil
	}
	args := []string{"--to", netip.AddrPortFrom(b.IP.Addr(), sinkPort).String()}
	if a.Native() {
		args = append(args, "--to-mac", b.MAC.String())
	}
	return args
}

// start starts a program where the function of an end would be, and ends it
// with the test at the latest.
func (r *Rig) start(cmd *exec.Cmd, end int) error {
	if err := (host.Place{Netns: r.Spec.Ends[end].Netns}).Start(cmd); err != nil {
		return err
	}
	watchdog := time.AfterFunc(time.Minute, func() { _ = cmd.Process.Kill() })
	r.t.Cleanup(func() {
		watchdog.Stop()
		_ = cmd.Process.Kill() // it has ended, unless the test has failed
		_ = cmd.Wait()
	})
	return nil
}
