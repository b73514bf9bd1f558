// SPDX-License-Identifier: Apache-2.0

package nodeagent

import (
	"testing"

	"github.com/drayage/dray/internal/spec/dpdk"
	"github.com/drayage/dray/internal/spec/inventory"
	"github.com/drayage/dray/kube/api/v1alpha1"
)

// What claims can select a node by is what it has, and no more.
func TestAttributesOfANode(t *testing.T) {
	item := func(name string, s inventory.Status) inventory.Item {
		return inventory.Item{Name: name, Status: s, Version: "22.11"}
	}
	inv := &inventory.Inventory{
		Host:       inventory.Host{NUMANodes: 2},
		Transports: []inventory.Transport{{Item: item("shm", inventory.OK)}, {Item: item("memif", inventory.Missing)}, {Item: item("vxlan", inventory.OK)}},
	}
	for status, versions := range map[inventory.Status]string{inventory.OK: "22.11", inventory.Missing: ""} {
		inv.DPDK = []inventory.Item{item(dpdk.NetDray, status)}
		d := resources("n1", inv).Pools["n1"].Slices[0].Devices[0]
		if got := *d.Attributes["transports"].StringValue; got != "shm vxlan" {
			t.Errorf("transports %q", got)
		}
		got, known := d.Attributes["dpdk"]
		if known != (versions != "") || known && *got.StringValue != versions {
			t.Errorf("with a driver that is %s: %+v", status, got)
		}
		if n := *d.Attributes["numaNodes"].IntValue; n != 2 {
			t.Errorf("%d NUMA nodes", n)
		}
		if ports := d.Capacity[v1alpha1.CapacityPorts].Value; *d.Attributes[v1alpha1.AttributeNode].StringValue != "n1" || ports.Value() != maxPorts {
			t.Errorf("%+v", d)
		}
	}
}
