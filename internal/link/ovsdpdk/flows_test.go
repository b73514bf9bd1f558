// SPDX-License-Identifier: Apache-2.0

package ovsdpdk

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/drayage/dray/internal/link/transport"
	"github.com/drayage/dray/internal/link/transporttest"
	"github.com/drayage/dray/internal/spec/chain"
	"github.com/drayage/dray/test/testenv"
)

func TestFlows(t *testing.T) {
	for _, c := range []struct {
		ends int
		mode chain.Forwarding
		want string
	}{
		{2, "", "in_port=1 actions=output:2|in_port=2 actions=output:1"},
		{2, chain.ForwardingDirect, "in_port=1 actions=output:2|in_port=2 actions=output:1"},
		{2, chain.ForwardingLearning, "actions=NORMAL"},
		{3, "", "actions=NORMAL"},
		{3, chain.ForwardingLearning, "actions=NORMAL"},
	} {
		s := spec(make([]transport.End, c.ends)...)
		s.Forwarding = c.mode
		if got := strings.Join(New().(driver).newSwitch(s).flows(), "|"); got != c.want {
			t.Errorf("%d ends, %q: %s", c.ends, c.mode, got)
		}
	}
}

func TestParseFlows(t *testing.T) {
	for out, want := range map[string][]string{
		"": {},
		"NXST_FLOW reply (xid=0x4):\n in_port=2 actions=output:1\n in_port=1 actions=output:2\n": {"in_port=1 actions=output:2", "in_port=2 actions=output:1"},
		" actions=NORMAL\n priority=0 actions=NORMAL":                                            {"actions=NORMAL", "priority=0 actions=NORMAL"},
	} {
		if got := parseFlows(out); !slices.Equal(got, want) {
			t.Errorf("%q: %q, want %q", out, got, want)
		}
	}
}

// TestFlowsAreReadBack: a switch with unexpected flows is detected, and gets
// its flows again.
func TestFlowsAreReadBack(t *testing.T) {
	ctx := context.Background()
	testenv.Root(t)
	testenv.Kernel(t, New().Probe(ctx))
	r := transporttest.NewRig(t, New(), transporttest.Options{Dpdk: []int{0, 1}, Forwarding: chain.ForwardingLearning})
	report := r.Up()
	w := New().(driver).newSwitch(r.Spec)
	if err := w.checkFlows(ctx); err != nil {
		t.Fatal(err)
	}
	w.direct = true
	if err := w.checkFlows(ctx); err == nil || !strings.Contains(err.Error(), "NORMAL") {
		t.Errorf("a learning switch passes as a direct one: %v", err)
	}
	w.direct = false
	if _, err := w.tool(ctx, "ovs-ofctl", "del-flows", management); err != nil {
		t.Fatal(err)
	}
	if err := w.checkFlows(ctx); err == nil {
		t.Error("a switch without flows passes the check")
	}
	if err := w.revive(ctx, report); err != nil {
		t.Error(err)
	}
	if err := w.checkFlows(ctx); err != nil {
		t.Error(err)
	}
}
