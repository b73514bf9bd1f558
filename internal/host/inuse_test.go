// SPDX-License-Identifier: Apache-2.0

package host

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/drayage/dray/test/testenv"
)

// An interface is in use if it is up, has an address, or belongs to a bridge; the loopback
// of this machine shows what an address does there.
func TestInUse(t *testing.T) {
	testenv.Root(t)
	ns := testNetns(t)
	must(t, CreateVeth(
		Iface{Netns: ns, Name: "card", MAC: mac(t, "02:00:00:00:02:01"), MTU: 1500},
		Iface{Netns: testNetns(t), Name: "peer", MAC: mac(t, "02:00:00:00:02:02"), MTU: 1500}))
	must(t, CreateBridge(Iface{Netns: ns, Name: "br0", MAC: mac(t, "02:00:00:00:02:03"), MTU: 1500}))
	check := func(want string) {
		t.Helper()
		if got, err := ns.InUse("card"); err != nil || got != want && (want == "" || !strings.Contains(got, want)) {
			t.Errorf("in use: %q, want %q: %v", got, want, err)
		}
	}
	check("")
	must(t, ns.SetMaster("card", "br0"))
	check("it is part of br0")
	must(t, ns.SetUp("card"))
	check("it is part of br0")
	must(t, ns.RemoveLink("br0"))
	check("it is up")
	must(t, ns.AddAddr("card", netip.MustParsePrefix("192.0.2.1/24")))
	check("it has the address 192.0.2.1/24")
	if _, err := ns.InUse("nowhere"); err == nil {
		t.Error("an interface that does not exist is free")
	}
}
