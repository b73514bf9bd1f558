// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"strings"
	"testing"

	"github.com/drayage/dray/internal/spec/chain"
	"github.com/drayage/dray/internal/spec/inventory"
)

// vfHost has two cards, with one and with three free VFs.
func vfHost() *inventory.Inventory {
	return &inventory.Inventory{
		Host:     inventory.Host{Hostname: "h", CPUs: []int{0, 1}, MemoryTotal: 8 << 30, MemoryFree: 8 << 30},
		Runtimes: []inventory.Item{{Name: "process", Status: inventory.OK}},
		Interfaces: []inventory.Interface{
			{Name: "eth0", MTU: 1500, Up: true, VFs: 1}, {Name: "eth1", MTU: 1500, Up: true, VFs: 3}, {Name: "eth2", MTU: 1500, Up: true},
			{Name: "eth3", MTU: 1500, VFs: 8}, {Name: "eth4", MTU: 576, Up: true, VFs: 8}, // down; MTU too small
		},
		Transports: []inventory.Transport{{
			Item: inventory.Item{Name: "sr-iov", Status: inventory.OK},
			Caps: inventory.Caps{
				Faces: []string{string(chain.FaceNetdev)}, Isolation: string(chain.IsolationNoSharedMemory), MinEnds: 1,
				Uplink: true, VFs: true, Shapes: true, MaxMTU: 9216, Rank: -3, Privileges: "none",
			},
		}},
	}
}

// TestVirtualFunctions: each port takes one VF, all of one card.
func TestVirtualFunctions(t *testing.T) {
	for _, c := range []struct {
		name, uplink string
		ports        int
		refused      string // text of the reason; empty: it is planned
	}{
		{"two of any card", "", 2, ""},
		{"four of any card", "", 4, "3 are free"},
		{"one of a named card", "eth0", 1, ""},
		{"two of a named card", "eth0", 2, "1 are free"},
		{"a card without", "eth2", 1, "0 are free"},
	} {
		t.Run(c.name, func(t *testing.T) {
			ch := pair()
			ch.Functions, ch.Links[0].Ends, ch.Links[0].Transport = nil, nil, "sr-iov"
			for i := range c.ports {
				name := string(rune('a' + i))
				ch.Functions = append(ch.Functions, function(name, port("p0")))
				ch.Links[0].Ends = append(ch.Links[0].Ends, end(name, "p0"))
			}
			if c.uplink != "" {
				ch.Links[0].Ends = append(ch.Links[0].Ends, chain.End{Uplink: c.uplink})
			}
			if c.refused == "" {
				if p := mustPlan(t, ch, vfHost()); p.Links[0].Transport != "sr-iov" {
					t.Errorf("%+v", p.Links[0])
				}
				return
			}
			if v := mustViolate(t, ch, vfHost()); !v.Hard || !strings.Contains(v.Reason, c.refused) || !strings.Contains(v.Fix, "sriov_numvfs") {
				t.Errorf("%+v", v)
			}
		})
	}
	v := mustViolate(t, pair(), vfHost())
	if !strings.Contains(v.Reason, "no transport that auto may choose") {
		t.Errorf("auto: %+v", v)
	}
}
