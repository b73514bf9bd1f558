// SPDX-License-Identifier: Apache-2.0

package transporttest

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/drayage/dray/internal/host"
	"github.com/drayage/dray/internal/link/transport"
	"github.com/drayage/dray/internal/spec/chain"
	"github.com/drayage/dray/internal/spec/units"
	"github.com/drayage/dray/test/testenv"
)

// RunNative runs the suite for links whose given ports are native, with the
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

// RunNativeUplink runs the suite for links from a native port to a host interface.
func RunNativeUplink(t *testing.T, d transport.Driver) {
	require(t, d)
	draygen := testenv.Built(t, "draygen")
	openBefore, _ := leaks(t)
	o := Options{Uplink: true, Native: []int{0}}
	t.Run("Traffic", func(t *testing.T) {
		r := NewRig(t, d, o)
		r.Up()
		// No kernel answers for a native port; its application would have to.
		port, outside := r.Spec.Ends[0], r.stations[1]
		testenv.Must(t, outside.ns.AddNeighbour(outside.name, port.IP.Addr(), port.MAC))
		r.generate(draygen, 0, 1, 500)
		r.generate(draygen, 1, 0, 500)
	})
	t.Run("NoInterface", func(t *testing.T) { testNoInterface(t, d, o) })
	t.Run("Faults", func(t *testing.T) {
		RunFaults(t, func(t *testing.T) World { return NewRig(t, d, o) })
	})
	checkLeaks(t, openBefore)
}

// testNativeErrors checks that Build rejects specs that a broker cannot serve.
func testNativeErrors(t *testing.T, d transport.Driver, o Options) {
	r := NewRig(t, d, o)
	for _, c := range []struct {
		name   string
		change func(*transport.Spec, *transport.End)
		want   string
	}{
		{"face", func(_ *transport.Spec, e *transport.End) { e.Face = "morse" }, "use face: "},
		{"no broker", func(s *transport.Spec, _ *transport.End) { s.Broker = "" }, "no broker serves native ports"},
		{"no socket", func(_ *transport.Spec, e *transport.End) { e.Socket = "" }, "must be absolute"},
		{"messages", func(s *transport.Spec, _ *transport.End) {
			s.Messages = &chain.Messages{Size: units.Bytes(d.Caps().MaxMessage) + 1, Count: 1}
		}, "leave out messages, or lower their size"},
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

// testNativeTraffic sends packets of several sizes each way, and checks that
// each arrives intact, in order, and once.
func testNativeTraffic(t *testing.T, d transport.Driver, draygen string, o Options) {
	o.Queues = 2
	r := NewRig(t, d, o)
	r.Up()
	for _, size := range []int{100, r.Spec.MTU + 14} {
		r.generate(draygen, 0, 1, size)
		r.generate(draygen, 1, 0, size)
	}
}

// testNativeParallel creates two links with the same names at once.
func testNativeParallel(t *testing.T, d transport.Driver, draygen string, o Options) {
	a, b := NewRig(t, d, o), NewRig(t, d, o)
	a.Up()
	b.Up()
	a.generate(draygen, 0, 1, 500)
	b.generate(draygen, 0, 1, 500)
	testenv.Must(t, a.Remove())
	a.Clean("after the first link's removal")
	b.generate(draygen, 1, 0, 500)
}

// testNativeRemoval removes a link from its journal alone, twice, and creates
// it again. It also removes it after its broker died.
func testNativeRemoval(t *testing.T, d transport.Driver, draygen string, o Options) {
	r := NewRig(t, d, o)
	for round := range 2 {
		r.Up()
		if r.state() == r.before {
			t.Fatal("the state does not show that the link is up: the check for leftovers checks nothing")
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
	r.before = r.state() // the broker's links are no longer in it
	if strings.Contains(r.before, "socket ") || strings.Contains(r.before, "link f1u") {
		t.Errorf("with its broker dead, something is left:\n%s", r.before)
	}
}

// testNoInterface checks that a function with a native port sees no interface,
// and only the port's traffic.
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
	testenv.Must(t, err)
	for _, path := range hidden {
		s, err := host.Netns{Path: path}.ReadLink("f1u")
		if err != nil || !s.Up || len(s.Addrs) > 0 {
			t.Errorf("behind a native port: %+v, %v; want an interface that is up, without an address", s, err)
		}
	}
}
