// SPDX-License-Identifier: Apache-2.0

package memif

import (
	"testing"

	"github.com/drayage/dray/internal/link/transport"
	"github.com/drayage/dray/internal/link/transporttest"
	"github.com/drayage/dray/internal/spec/chain"
)

func TestConformance(t *testing.T) { transporttest.RunDpdk(t, New(), 0, 1) }

// TestRoles: the listening end must be able to admit the other, and must not
// wait for it.
func TestRoles(t *testing.T) {
	end := func(name string, r chain.RuntimeName, user int) transport.End {
		return transport.End{Function: name, Runtime: r, User: user}
	}
	after := func(e transport.End, others ...string) transport.End {
		e.StartsAfter = others
		return e
	}
	cases := []struct {
		a, b   transport.End
		server string // empty: neither can
	}{
		{end("a", chain.RuntimeRunc, 1), end("b", chain.RuntimeRunc, 2), "a"},
		{end("a", chain.RuntimeDocker, 0), end("b", chain.RuntimeDocker, 0), "a"},
		{end("a", chain.RuntimeDocker, 0), end("b", chain.RuntimeRunc, 2), "b"},
		{end("a", chain.RuntimeProcess, 0), end("b", chain.RuntimeRunc, 2), "b"},
		{end("a", chain.RuntimeProcess, 0), end("b", chain.RuntimeDocker, 1000), "b"},
		{end("a", chain.RuntimeDocker, 0), end("b", chain.RuntimeDocker, 1000), ""},
		{after(end("a", chain.RuntimeRunc, 1), "b"), end("b", chain.RuntimeRunc, 2), "b"},
		{after(end("a", chain.RuntimeRunc, 1), "c"), after(end("b", chain.RuntimeRunc, 2), "a"), "a"},
		{after(end("a", chain.RuntimeRunc, 1), "b"), end("b", chain.RuntimeDocker, 1000), ""},
		{end("a", chain.RuntimeRunc, 1), end("a", chain.RuntimeRunc, 1), ""},
	}
	for _, c := range cases {
		server, client, err := roles(c.a, c.b)
		if (err == nil) != (c.server != "") || err == nil && (server.Function != c.server || client.Function == c.server) {
			t.Errorf("%s as %d and %s as %d: %s listens, %v; want %q", c.a.Runtime, c.a.User, c.b.Runtime, c.b.User, server.Function, err, c.server)
		}
	}
}
