// SPDX-License-Identifier: Apache-2.0

package nodenet

import (
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/drayage/dray/internal/host"
	"github.com/drayage/dray/internal/spec/chain"
	"github.com/drayage/dray/kube/internal/probe"
)

// macA and macB are those of the ports of the tests' links.
const macA, macB = chain.MAC("02:00:00:00:00:0a"), chain.MAC("02:00:00:00:00:0b")

// Two halves on one machine have one clock, so the bounds of its difference must contain 0, and no
// delay is negative. What the applications send is counted, and they see no probe.
func TestALinkIsMeasured(t *testing.T) {
	n := newNode(t)
	c := n.Client
	keeper, server := start(t, "keeper", n.dir, n.ns), start(t, "server", n.dir, n.ns)
	pair(t, c)
	a, b := sockets(t, c, "ns/c/a", 1)[0], sockets(t, c, "ns/c/b", 1)[0]
	frame := append([]byte{2, 0, 0, 0, 0, 0x0b, 2, 0, 0, 0, 0, 0x0a, 0x88, 0xb5}, "payload"...)
	sent, came, foreign := 0, 0, 0
	buffer := make([]byte, 2000)
	var got []probe.Interval
	for deadline := time.Now().Add(2 * time.Minute); (len(got) < 4 || packets(got) < 1000) && time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		if _, err := unix.Write(a, frame); err == nil {
			sent++
		}
		for n, err := unix.Read(b, buffer); err == nil; n, err = unix.Read(b, buffer) {
			if came++; n != len(frame) {
				foreign++
			}
		}
		if sent%100 == 0 {
			if m, err := c.Measured(t.Context(), "ns/c/a", macA, 0, 0); err == nil {
				got = watched(m.Intervals)
			}
		}
	}
	if foreign > 0 || came == 0 {
		t.Errorf("%d frames came, %d of them not the application's", came, foreign)
	}
	if len(got) < 4 {
		t.Fatalf("%d intervals: %+v", len(got), got)
	}
	for n, i := range got {
		t.Logf("%d: %d+%d probes, clock %v, out %d sent %d missing, in %d sent", i.Number, i.Out.Probes, i.In.Probes, i.Clock, i.Out.Sent, i.Out.Missing, i.In.Sent)
		if i.Clock == nil || i.Clock[0] > 0 || i.Clock[1] < 0 {
			t.Errorf("interval %d: one clock differs from itself by %v", n, i.Clock)
		}
		if i.Out.Lost+i.In.Lost+i.Out.Missing+i.In.Missing+i.In.Sent > 0 {
			t.Errorf("interval %d: %+v", n, i)
		}
		for _, d := range append(i.Out.Delays, i.In.Delays...) {
			if d.Low() < 0 || d.High() < d.Low() || d.Above() < 0 {
				t.Errorf("interval %d: a delay of %v", n, d)
			}
		}
		if i.Out.Bytes+uint64(len(frame)) < i.Out.Sent*uint64(len(frame)) || i.Out.Bytes > (i.Out.Sent+1)*uint64(len(frame)) {
			t.Errorf("interval %d: %d bytes in %d packets of %d", n, i.Out.Bytes, i.Out.Sent, len(frame))
		}
	}
	if all := packets(got); all < 1000 || all > uint64(sent) {
		t.Errorf("%d packets counted of %d", all, sent)
	}
	if _, err := c.Measured(t.Context(), "ns/c/none", macA, 0, 0); err == nil {
		t.Error("a half that does not exist is measured")
	}
	apply(t, c, nil, true)
	if _, err := c.Measured(t.Context(), "ns/c/a", macA, 0, 0); err == nil {
		t.Error("a half that was removed is measured")
	}
	kill(server)
	kill(keeper)
}

// watched are the intervals in which the prober had the CPU: on a busy machine it can wait for
// as long as an interval takes, and what it reports of such an interval is that nothing is known.
func watched(all []probe.Interval) []probe.Interval {
	return slices.DeleteFunc(all, func(i probe.Interval) bool { return i.Out.Probes < 20 || i.In.Probes < 20 })
}

// packets is how many packets of applications left in these intervals.
func packets(all []probe.Interval) (n uint64) {
	for _, i := range all {
		n += i.Out.Sent
	}
	return n
}

// enough reports whether there is all that checkInterface looks at. One in 32 probes is of the full size, and the first
// interval counts no packets.
func enough(all []probe.Interval) bool {
	full := slices.ContainsFunc(all, func(i probe.Interval) bool { return i.Out.Full > 0 })
	return full && len(all) > 1 && packets(all) >= 20
}

// measures waits for intervals of a port with traffic of its own.
func (n *node) measures(half string, from, to host.Netns, enough func([]probe.Interval) bool) (got []probe.Interval) {
	n.t.Helper()
	for deadline := time.Now().Add(2 * time.Minute); !enough(got); {
		if time.Now().After(deadline) {
			n.t.Fatalf("%d intervals: %+v", len(got), got)
		}
		if !udp(n.t, from, to, "a packet of an application") {
			n.t.Fatal("nothing passes")
		}
		if m, err := n.Measured(n.t.Context(), half, macA, 0, 0); err == nil {
			got = watched(m.Intervals)
		}
	}
	return got
}

// checkInterface checks what is measured between the interfaces of pods. No packet is lost, and the pods see no packet
// dropped once each has measured the other.
func (n *node) checkInterface(half string, oneClock bool, from, to host.Netns) {
	t := n.t
	t.Helper()
	n.measures(half, from, to, func(all []probe.Interval) bool { return len(all) > 0 })
	before := dropped(t, from) + dropped(t, to)
	for _, i := range n.measures(half, from, to, enough) {
		t.Logf("%d: %d+%d probes, clock %v, out %d sent %d missing", i.Number, i.Out.Probes, i.In.Probes, i.Clock, i.Out.Sent, i.Out.Missing)
		if i.Out.Lost+i.In.Lost+i.Out.Missing+i.In.Missing > 0 || i.Clock == nil || i.Clock[0] > 0 || i.Clock[1] < 0 {
			t.Errorf("%+v", i)
			continue
		}
		if known := i.Clock[0] == i.Clock[1]; known != oneClock {
			t.Errorf("one clock: %v", known)
		}
		for _, d := range i.Out.Delays {
			if d.Low() < 0 || oneClock && (d.Low() == 0 || d.Low() != d.High()) {
				t.Errorf("a delay of %v", d)
			}
		}
	}
	if n := dropped(t, from) + dropped(t, to) - before; n > 0 {
		t.Errorf("the pods see %d packets dropped", n)
	}
}

// dropped is how many received packets a pod's interface has dropped.
func dropped(t *testing.T, pod host.Netns) int {
	t.Helper()
	var text []byte
	err := pod.Do(func() (err error) {
		text, err = os.ReadFile("/proc/thread-self/net/dev")
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	_, line, _ := strings.Cut(string(text), "f1u:")
	n, err := strconv.Atoi(strings.Fields(line)[3]) // bytes, packets, errs, drop
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func TestInterfacesAreMeasured(t *testing.T) {
	n := newNode(t)
	keeper, server := start(t, "keeper", n.dir, n.ns), start(t, "server", n.dir, n.ns)
	a, b := n.pod("a"), n.pod("b")
	alone := Half{Name: "ns/c/l", MTU: 1500, Tunnel: TunnelNone, Ports: []Port{interfaceOf(t, 0, a)}}
	n.made(alone)
	if _, err := n.Measured(t.Context(), alone.Name, macA, 0, 0); err == nil {
		t.Error("a link without its other port is measured")
	}
	both := alone
	both.Ports = []Port{alone.Ports[0], interfaceOf(t, 1, b)}
	n.made(both)
	n.checkInterface(both.Name, true, a, b)
	if m, err := n.Measured(t.Context(), both.Name, macB, 0, 0); err != nil || len(m.Intervals) == 0 {
		t.Errorf("from the other port: %+v, %v", m, err)
	}
	unknown := both // for example while dray-node starts
	unknown.Ports = []Port{interfaceOf(t, 0, host.Netns{}), both.Ports[1]}
	n.made(unknown)
	if m, err := n.Measured(t.Context(), both.Name, macA, 0, 0); err != nil || len(m.Intervals) < 2 {
		t.Errorf("while it is not known where the pod is: %+v, %v", m, err)
	}

	n.end(a)
	var err error
	for deadline := time.Now().Add(30 * lookEvery); err == nil && time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		_, err = n.Measured(t.Context(), both.Name, macA, 0, 0)
	}
	if err == nil || !strings.Contains(err.Error(), errPodEnded.Error()) {
		t.Errorf("the namespace of a pod that has ended is kept: %v", err)
	}
	kill(server)
	kill(keeper)
}

// The ports of two halves measure through the tunnel between these.
func TestInterfacesOfTwoNodesAreMeasured(t *testing.T) {
	n := newNode(t)
	keeper, server := start(t, "keeper", n.dir, n.ns), start(t, "server", n.dir, n.ns)
	a, b := n.pod("a"), n.pod("b")
	here := Half{Name: "ns/c/a", MTU: 1500, Ports: []Port{interfaceOf(t, 0, a)}}
	there := Half{Name: "ns/c/b", MTU: 1500, Ports: []Port{interfaceOf(t, 1, b)}}
	at := netip.MustParseAddr(nodeAddress)
	made := applied(t, n.Client, []Half{here, there})
	here.Peer, there.Peer = &Peer{MAC: macB, Addr: at, VNI: made[1].VNI}, &Peer{MAC: macA, Addr: at, VNI: made[0].VNI}
	applied(t, n.Client, []Half{here, there})
	n.checkInterface(here.Name, false, a, b)
	kill(server)
	kill(keeper)
}
