// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/drayage/dray/internal/plan"
	"github.com/drayage/dray/internal/spec/chain"
	"github.com/drayage/dray/internal/spec/inventory"
	"github.com/drayage/dray/test/testenv"
)

// uplinkedYAML is a function on an interface of the host.
const uplinkedYAML = `
apiVersion: drayage/v1
kind: Chain
name: one
functions:
  - {name: upf, runtime: process, command: [sleep, infinity], ports: [{name: n6, ip: IP}]}
links:
  - {name: n6, ends: [upf.n6, {uplink: w0}], transport: macvlan}
`

// uplinked is that chain with a name, an address, and a MAC address of its name.
func uplinked(t *testing.T, name, ip string) (*chain.Chain, *plan.Plan) {
	t.Helper()
	c, err := chain.Parse("uplinked.yaml", []byte(strings.NewReplacer("name: one", "name: "+name, "IP", ip).Replace(uplinkedYAML)))
	testenv.Must(t, err)
	port := c.Functions[0].Ports[0]
	return c, &plan.Plan{Chain: name, Links: []plan.Link{{
		Name: "n6", Transport: "macvlan",
		Ends: []plan.End{{Function: "upf", Port: "n6", IP: port.IP, MAC: chain.MAC("02:" + name)}, {Uplink: "w0"}},
	}}}
}

// savedChain is a chain of which only the state exists.
func savedChain(t *testing.T, n *Node, name, ip string) *Live {
	t.Helper()
	c, p := uplinked(t, name, ip)
	l := &Live{Chain: c, State: State{Plan: p}, node: n, dir: n.dir(name)}
	testenv.Must(t, os.Mkdir(l.dir, 0o711))
	testenv.Must(t, l.save())
	return l
}

// TestAnAddressOnAnUplinkIsOneChains: of two dray up at once, each planned before the other
// began, one fails.
func TestAnAddressOnAnUplinkIsOneChains(t *testing.T) {
	n := &Node{StateDir: t.TempDir()}
	savedChain(t, n, "one", "2001:db8::a/64")
	c, p := uplinked(t, "two", "2001:db8::a/48")
	_, err := n.Create(context.Background(), "up", c, nil, p)
	const want = "link n6: ip 2001:db8::a of upf.n6: the port upf.n6 of chain one has this address on w0; give upf.n6 another ip, or take the other chain down: dray down one"
	if err == nil || err.Error() != want {
		t.Errorf("another chain with the address: %v", err)
	}
	if _, err := os.Stat(filepath.Join(n.StateDir, "two")); !os.IsNotExist(err) {
		t.Errorf("it left its directory: %v", err)
	}
	_, p = uplinked(t, "two", "2001:db8::b/64")
	testenv.Must(t, n.checkClaimed("two", nil, p.Links))
	mac := &p.Links[0].Ends[0].MAC
	*mac = "02:one"
	if err := n.checkClaimed("two", nil, p.Links); err == nil || !strings.Contains(err.Error(), "mac 02:one of upf.n6") {
		t.Errorf("another chain with the MAC address: %v", err)
	}
	p.Links[0].Ends[1].Uplink = "w1"
	testenv.Must(t, n.checkClaimed("two", nil, p.Links)) // on another interface
}

// TestAChangeClaimsItsAddresses before it begins, and keeps its old ones until it ends.
func TestAChangeClaimsItsAddresses(t *testing.T) {
	n := &Node{StateDir: t.TempDir()}
	one, _ := savedChain(t, n, "one", "192.0.2.10/24"), savedChain(t, n, "two", "192.0.2.11/24")
	_, p := uplinked(t, "one", "192.0.2.11/24")
	if err := one.claim(context.Background(), nil, p.Links); err == nil || !strings.Contains(err.Error(), "chain two has this address") {
		t.Errorf("a change takes the address of another chain: %v", err)
	}
	_, p = uplinked(t, "one", "192.0.2.12/24")
	testenv.Must(t, one.claim(context.Background(), nil, append(p.Links, plan.Link{Name: "inside", Ends: []plan.End{{}, {}}})))
	inv := &inventory.Inventory{Interfaces: []inventory.Interface{{Name: "w0"}, {Name: "w1"}}}
	testenv.Must(t, n.LeaveOutClaimed(inv, "two"))
	var ips []string
	for _, s := range inv.Interfaces[0].Stations {
		ips = append(ips, s.String()+" "+s.IPs[0].String())
	}
	want := []string{"the port upf.n6 of chain one 192.0.2.10", "the port upf.n6 of chain one 192.0.2.12"}
	if !slices.Equal(ips, want) || len(inv.Interfaces[1].Stations) > 0 {
		t.Errorf("during a change, chain one has %q", ips)
	}
}

// TestCPUsOfABrokenChainStayItsOwn: its functions may run.
func TestCPUsOfABrokenChainStayItsOwn(t *testing.T) {
	n := newNode(t)
	c, p := pair(t)
	p.Functions[0].CPUs = []int{0}
	commit(t, n, c, p)
	damages["garbage"](t, n.journalFile("pair"))
	if claimed, err := n.claims(""); err != nil || !slices.Equal(claimed.cpus["pair"], []int{0}) {
		t.Errorf("%+v, %v", claimed, err)
	}
	_, err := n.Down(context.Background(), "pair")
	testenv.Must(t, err)
}
