// SPDX-License-Identifier: Apache-2.0

package host

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/drayage/dray/internal/host/step"
	"github.com/drayage/dray/test/testenv"
)

// idle is a host interface that a port may use; lit is a card's.
var idle, lit = hostLink{mtu: 1500}, hostLink{mtu: 1500, up: true, carrier: true}

// cards are two cards: eth0 with the functions eth1 to eth3, and eth5 with none.
func cards() map[string]string {
	tree := map[string]string{
		"class/net/eth0/device/sriov_totalvfs": "7\n",
		"class/net/eth5/device/sriov_totalvfs": "4\n",
	}
	for i := range 3 {
		address := fmt.Sprintf("0000:01:10.%d", 2*i)
		tree[fmt.Sprintf("class/net/eth0/device/virtfn%d", i)] = "→../../../../bus/pci/devices/" + address
		tree[fmt.Sprintf("bus/pci/devices/%s/net/eth%d/up", address, i+1)] = ""
	}
	return tree
}

func TestChoose(t *testing.T) {
	idleLinks := map[string]hostLink{"eth0": lit, "eth1": idle, "eth2": idle, "eth3": idle, "eth5": lit}
	for _, c := range []struct {
		name   string
		pf     string
		want   int
		change func(links map[string]hostLink, p vfPool)
		took   string // or
		err    string
	}{
		{name: "the first that are free", want: 2, took: "eth0 eth1 eth2"},
		{name: "by name", pf: "eth0", want: 3, took: "eth0 eth1 eth2 eth3"},
		{name: "one that is up", want: 2, took: "eth0 eth1 eth3", change: func(l map[string]hostLink, _ vfPool) { l["eth2"] = lit }},
		{name: "one in a bridge", want: 1, took: "eth0 eth2", change: func(l map[string]hostLink, _ vfPool) { l["eth1"] = hostLink{master: true} }},
		{name: "one with an address", want: 1, took: "eth0 eth2", change: func(l map[string]hostLink, _ vfPool) {
			l["eth1"] = hostLink{addresses: []netip.Addr{netip.IPv6Loopback()}}
		}},
		{name: "one in another namespace", want: 1, took: "eth0 eth2", change: func(l map[string]hostLink, _ vfPool) { delete(l, "eth1") }},
		{name: "one that is claimed", want: 1, took: "eth0 eth2", change: func(_ map[string]hostLink, p vfPool) {
			must(t, p.write(vfClaim{Boot: p.boot, Address: "0000:01:10.0", Port: "f1u"}))
		}},
		{name: "one that was claimed before the host restarted", want: 1, took: "eth0 eth1", change: func(_ map[string]hostLink, p vfPool) {
			must(t, p.write(vfClaim{Boot: "another", Address: "0000:01:10.0", Port: "f1u"}))
		}},
		{name: "a note that cannot be read", want: 3, err: "vf 0 is noted as a port's", change: func(_ map[string]hostLink, p vfPool) {
			must(t, os.WriteFile(filepath.Join(p.claims, "0000:01:10.0"), []byte("{"), 0o600))
		}},
		{name: "a note of another's", want: 3, err: "vf 0 is noted as a port's", change: func(_ map[string]hostLink, p vfPool) {
			must(t, os.WriteFile(filepath.Join(p.claims, "0000:01:10.0"), []byte(`{"boot":"other","address":"0000:01:10.2"}`), 0o600))
		}},
		{name: "none is free", pf: "eth0", want: 1, err: "of the 3 virtual functions of eth0 0 are free: vf 0 eth1 is up, vf 1 eth2 is up, vf 2 eth3 is up (ip link set IFACE down",
			change: func(l map[string]hostLink, _ vfPool) { l["eth1"], l["eth2"], l["eth3"] = lit, lit, lit }},
		{name: "more than there are", pf: "eth0", want: 4, err: "no VF: 4 are needed, but of the 3 virtual functions of eth0 3 are free (ip link set IFACE down"},
		{name: "more than there can be", pf: "eth0", want: 8, err: "eth0 can have 7 virtual functions, but 8 are needed (use another card"},
		{name: "none is there", pf: "eth5", want: 2, err: "no VF: eth5 can have 4 virtual functions, but has none (echo 2 > /sys/class/net/eth5/device/sriov_numvfs)"},
		{name: "no card", pf: "eth1", want: 1, err: "eth1 has no SR-IOV (use eth0)"},
		{name: "a path for a name", pf: "../net/eth0", want: 1, err: "has no SR-IOV"},
		{name: "down", want: 1, err: "eth0 is down (ip link set eth0 up)", change: func(l map[string]hostLink, _ vfPool) { l["eth0"] = idle }},
		{name: "no cable", pf: "eth0", want: 1, err: "eth0 has no carrier", change: func(l map[string]hostLink, _ vfPool) { l["eth0"] = hostLink{up: true, mtu: 1500} }},
		{name: "short packets", want: 1, err: "ip link set eth0 mtu 1500", change: func(l map[string]hostLink, _ vfPool) { l["eth0"] = hostLink{up: true, carrier: true, mtu: 1400} }},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := vfPool{sysfs: fakeSysfs(t, cards()), claims: t.TempDir(), boot: "this"}
			links := map[string]hostLink{}
			for name, l := range idleLinks {
				links[name] = l
			}
			if c.change != nil {
				c.change(links, p)
			}
			pf, vfs, err := p.chooseAmong(c.pf, c.want, 1500, links)
			took := pf.name
			for _, vf := range vfs {
				took += " " + vf.link
			}
			if c.err == "" && (err != nil || took != c.took) || c.err != "" && (!errors.Is(err, ErrUnsupported) || !strings.Contains(err.Error(), c.err)) {
				t.Errorf("took %q, error %v", took, err)
			}
		})
	}
	p := vfPool{sysfs: fakeSysfs(t, map[string]string{"class/net/eth0/up": ""}), claims: t.TempDir(), boot: "this"}
	if _, _, err := p.chooseAmong("", 1, 1500, nil); err == nil || !strings.Contains(err.Error(), "no VF: no network interface of this host has SR-IOV") {
		t.Errorf("without a card: %v", err)
	}
	p.sysfs = fakeSysfs(t, cards())
	if count, err := p.countFreeVFs(idleLinks); err != nil || count["eth0"] != 3 || count["eth5"] != 0 {
		t.Errorf("%v, %v", count, err)
	}
}

// TestClaims: a claim appears whole, and goes for good.
func TestClaims(t *testing.T) {
	p := vfPool{claims: filepath.Join(t.TempDir(), "claims"), boot: "this"}
	if claims, err := p.claimed(); err != nil || len(claims) != 0 {
		t.Fatal(claims, err)
	}
	unlock, err := p.lock(context.Background())
	must(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := p.lock(ctx); !errors.Is(err, ErrLocked) {
		t.Errorf("a second lock: %v", err)
	}
	unlock()
	c := vfClaim{Boot: "this", Address: "0000:01:10.0", Netns: "/x", Port: "f1u", PortMAC: "02:00:00:00:00:01", MTU: 1500, Offloads: map[string]bool{"tx-checksum": true}}
	must(t, p.write(c))
	must(t, os.WriteFile(filepath.Join(p.claims, "0000:01:10.2.next"), []byte("{"), 0o600)) // of a killed writer
	claims, err := p.claimed()
	must(t, err)
	got, ok := claims[c.Address]
	if !ok || len(claims) != 1 || !got.Offloads["tx-checksum"] {
		t.Errorf("%+v", claims)
	}
	if !got.is(VFResource(Netns{Path: "/x"}, "f1u", mac(t, "02:00:00:00:00:01"))) || got.is(VFResource(Netns{Path: "/y"}, "f1u", mac(t, "02:00:00:00:00:01"))) {
		t.Error("a claim does not know its resource")
	}
	for range 2 {
		must(t, p.drop(c.Address))
	}
	if claims, err := p.claimed(); err != nil || len(claims) != 0 {
		t.Error(claims, err)
	}
}

// TestGiveBackOfNone: a function never taken, or gone with its card, is done.
func TestGiveBackOfNone(t *testing.T) {
	testenv.Root(t)
	must(t, giveBackVF(context.Background(), step.Resource{Kind: KindVF, Netns: "/nowhere", Name: "f1u", MAC: "02:00:00:00:00:01"}))
	p := vfPool{sysfs: fakeSysfs(t, cards()), claims: t.TempDir(), boot: "this"}
	gone := vfClaim{Boot: "this", Address: "0000:02:10.0", Netns: "/nowhere"}
	must(t, p.write(gone))
	must(t, p.giveBack(context.Background(), gone))
	if claims, err := p.claimed(); err != nil || len(claims) != 0 {
		t.Error(claims, err)
	}
	// One that exists but stays away is an error, and stays claimed.
	away := vfClaim{Boot: "this", Address: "0000:03:10.0", PF: "eth0", VF: 7}
	must(t, os.MkdirAll(filepath.Join(p.sysfs, "bus/pci/devices", away.Address), 0o755))
	must(t, p.write(away))
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := p.giveBack(ctx, away); err == nil || !strings.Contains(err.Error(), "vf 7 of eth0 (0000:03:10.0) does not come back") {
		t.Error(err)
	}
	if claims, err := p.claimed(); err != nil || len(claims) != 1 {
		t.Error(claims, err)
	}
}

// TestMoveLink moves an interface whose old name is taken at its destination, as a
// port's often is: only the new one counts.
func TestMoveLink(t *testing.T) {
	testenv.Root(t)
	from, to := testNetns(t), testNetns(t)
	must(t, CreateVeth(Iface{Netns: from, Name: "eth1", MAC: mac(t, "02:00:00:00:00:0a"), MTU: 1500}, Iface{Netns: to, Name: "eth1", MAC: mac(t, "02:00:00:00:00:0b"), MTU: 1500}))
	s, err := from.ReadLink("eth1")
	must(t, err)
	if err := moveLink(from, s.Index, to, "eth1"); !errors.Is(err, unix.EEXIST) {
		t.Errorf("under a name that is taken: %v", err)
	}
	must(t, moveLink(from, s.Index, to, "f1u"))
	got, err := to.ReadLink("f1u")
	must(t, err)
	if got.MAC.String() != s.MAC.String() {
		t.Errorf("%+v", got)
	}
	if there, err := from.hasLink("eth1"); there || err != nil {
		t.Errorf("it is still there: %v", err)
	}
}
