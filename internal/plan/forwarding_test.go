// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"strings"
	"testing"

	"github.com/drayage/dray/internal/spec/chain"
	"github.com/drayage/dray/internal/spec/inventory"
)

// TestForwarding: a link gets the forwarding it asks for. The default is a flow between
// exactly two ends.
func TestForwarding(t *testing.T) {
	chooses := &inventory.Transport{Caps: inventory.Caps{Forwards: true}}
	fixed := &inventory.Transport{}
	for _, c := range []struct {
		ends       int
		asked      chain.Forwarding
		want       chain.Forwarding
		way, other string // the other transport's obstacle
	}{
		{2, "", chain.ForwardingDirect, "x, direct", ""},
		{3, "", chain.ForwardingLearning, "x, learning", ""},
		{2, chain.ForwardingDirect, chain.ForwardingDirect, "x, direct", "forwarding direct"},
		{2, chain.ForwardingLearning, chain.ForwardingLearning, "x, learning", "forwarding learning"},
	} {
		l := &chain.Link{Ends: make([]chain.End, c.ends), Forwarding: c.asked}
		got := forwardingOf(l, chooses)
		if way := (Link{Transport: "x", Forwarding: got}).Way(); got != c.want || way != c.way {
			t.Errorf("%d ends that ask for %q: %q, %q", c.ends, c.asked, got, way)
		}
		if got := forwardingOf(l, fixed); got != "" {
			t.Errorf("a transport without the choice forwards %q", got)
		}
		n := &needs{link: l}
		if o := forwardingObstacle(chooses, n); o != nil {
			t.Errorf("%q: %+v", c.asked, o)
		}
		switch o := forwardingObstacle(fixed, n); {
		case c.other == "" && o != nil, c.other != "" && (o == nil || o.constraint != c.other || !strings.Contains(o.fix, "Open vSwitch")):
			t.Errorf("%q of a transport without the choice: %+v", c.asked, o)
		}
	}
	if way := (Link{Transport: "y"}).Way(); way != "y" {
		t.Error(way)
	}
}
