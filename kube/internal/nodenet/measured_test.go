// SPDX-License-Identifier: Apache-2.0

package nodenet

import (
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/drayage/dray/kube/internal/probe"
)

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
	for deadline := time.Now().Add(30 * time.Second); len(got) < 4 && time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		if _, err := unix.Write(a, frame); err == nil {
			sent++
		}
		for n, err := unix.Read(b, buffer); err == nil; n, err = unix.Read(b, buffer) {
			if came++; n != len(frame) {
				foreign++
			}
		}
		if sent%100 == 0 {
			if m, err := c.Measured(t.Context(), "ns/c/a", 0, 0); err == nil {
				got = m.Intervals
			}
		}
	}
	if foreign > 0 || came == 0 {
		t.Errorf("%d frames came, %d of them not the application's", came, foreign)
	}
	if len(got) < 4 {
		t.Fatalf("%d intervals: %+v", len(got), got)
	}
	var packets uint64
	for n, i := range got {
		t.Logf("%d: %d+%d probes, clock %v, out %d sent %d missing, in %d sent", i.Number, i.Out.Probes, i.In.Probes, i.Clock, i.Out.Sent, i.Out.Missing, i.In.Sent)
		if i.Clock == nil || i.Clock[0] > 0 || i.Clock[1] < 0 {
			t.Errorf("interval %d: one clock differs from itself by %v", n, i.Clock)
		}
		if i.Out.Lost+i.In.Lost+i.Out.Missing+i.In.Missing+i.In.Sent > 0 || i.Out.Probes < 20 || i.In.Probes < 20 {
			t.Errorf("interval %d: %+v", n, i)
		}
		for _, d := range append(i.Out.Delays, i.In.Delays...) {
			if d.Low() < 0 || d.High() < d.Low() || d.Above() < 0 {
				t.Errorf("interval %d: a delay of %v", n, d)
			}
		}
		if packets += i.Out.Sent; i.Out.Bytes+uint64(len(frame)) < i.Out.Sent*uint64(len(frame)) || i.Out.Bytes > (i.Out.Sent+1)*uint64(len(frame)) {
			t.Errorf("interval %d: %d bytes in %d packets of %d", n, i.Out.Bytes, i.Out.Sent, len(frame))
		}
	}
	if packets < 1000 || packets > uint64(sent) {
		t.Errorf("%d packets counted of %d", packets, sent)
	}
	if _, err := c.Measured(t.Context(), "ns/c/none", 0, 0); err == nil {
		t.Error("a half that does not exist is measured")
	}
	apply(t, c, nil, true)
	if _, err := c.Measured(t.Context(), "ns/c/a", 0, 0); err == nil {
		t.Error("a half that was removed is measured")
	}
	kill(server)
	kill(keeper)
}
