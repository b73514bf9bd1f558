// SPDX-License-Identifier: Apache-2.0

package memif

import (
	"testing"

	"github.com/drayage/dray/internal/link/transport"
	"github.com/drayage/dray/internal/link/transporttest"
	"github.com/drayage/dray/internal/spec/chain"
)

func TestConformance(t *testing.T) { transporttest.RunDpdk(t, New(), 0, 1) }

// TestOnlyTheServerWrites: a client in a container has a directory of its own. A process
// of another user must be able to write to the server's.
func TestOnlyTheServerWrites(t *testing.T) {
	for runtime, want := range map[chain.RuntimeName][2]string{
		chain.RuntimeRunc: {"/b", "/a"}, chain.RuntimeDocker: {"/b", "/a"},
		chain.RuntimeProcess: {"/a", ""}, chain.RuntimeExternal: {"/a", ""},
	} {
		s := transport.Spec{Link: "l", MTU: maxMTU, Ends: []transport.End{
			{Function: "a", Face: chain.FaceDPDK, Runtime: chain.RuntimeRunc, User: 1, Dir: "/a"},
			{Function: "b", Face: chain.FaceDPDK, Runtime: runtime, User: 2, Dir: "/b"},
		}}
		build, err := build(s)
		if err != nil {
			t.Fatal(err)
		}
		if client := build.Report.Vdevs[1]; client.Dir != want[0] || client.Peer != want[1] {
			t.Errorf("%s: its directory is %q, its peer's %q", runtime, client.Dir, client.Peer)
		}
	}
}

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
