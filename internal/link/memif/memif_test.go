// SPDX-License-Identifier: Apache-2.0

package memif

import (
	"net"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/drayage/dray/internal/link/transport"
	"github.com/drayage/dray/internal/link/transporttest"
	"github.com/drayage/dray/internal/spec/chain"
	"github.com/drayage/dray/internal/spec/dpdk"
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

// options are those of the device in an application's EAL arguments, as a program without
// EAL reads them.
func options(t *testing.T, v dpdk.Vdev) map[string]string {
	t.Helper()
	v.Dir = "/run/dray/c/fn/a/links/n3"
	eal, err := dpdk.Application{CPUs: []int{0}, Vdevs: []dpdk.Vdev{v}, Inside: true}.EAL()
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for _, word := range eal {
		if !strings.HasPrefix(word, dpdk.NetMemif) {
			continue
		}
		for _, option := range strings.Split(word, ",")[1:] {
			name, value, _ := strings.Cut(option, "=")
			all[name] = value
		}
	}
	return all
}

var documented = regexp.MustCompile("(?m)^\\| `([a-z-]+)` \\|")

// TestOptionsAreDocumented: programs without EAL rely on what the page says.
func TestOptionsAreDocumented(t *testing.T) {
	text, err := os.ReadFile("../../../docs/dpdk-ports.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(text), "\n### memif without EAL\n")
	section, _, _ = strings.Cut(section, "\n### ")
	names := documented.FindAllStringSubmatch(section, -1)
	if len(names) != 5 {
		t.Errorf("the page has a table of %d options", len(names))
	}
	mac := net.HardwareAddr{2, 0, 0, 0, 0, 1}
	want := map[string]string{"socket": "/run/dray/links/n3/memif.sock", "socket-abstract": "no", "id": "0", "mac": mac.String()}
	for role, server := range map[string]bool{"server": true, "client": false} {
		got := options(t, Device("a", "n3", mac, stockMTU, server))
		want["role"] = role
		for _, name := range names {
			if value, given := got[name[1]]; !given || value != want[name[1]] {
				t.Errorf("%s: option %s is %q, want %q", role, name[1], value, want[name[1]])
			}
		}
		if !strings.Contains(section, "`"+role+"`") || !strings.Contains(section, "/run/dray/links/PORT/memif.sock") {
			t.Errorf("the page does not say what role %s, or where the socket is", role)
		}
	}
}
