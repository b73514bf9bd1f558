// SPDX-License-Identifier: Apache-2.0

package nodeagent

import (
	"testing"

	resourcev1 "k8s.io/api/resource/v1"

	"github.com/drayage/dray/internal/link/all"
	"github.com/drayage/dray/internal/link/shm"
	"github.com/drayage/dray/internal/spec/dpdk"
	"github.com/drayage/dray/internal/spec/inventory"
	"github.com/drayage/dray/kube/api/v1alpha1"
	"github.com/drayage/dray/kube/internal/nodenet"
	"github.com/drayage/dray/kube/internal/nodeswitch"
)

// What claims can select a node by is what it has, and no more.
func TestAttributesOfANode(t *testing.T) {
	item := func(name string, s inventory.Status) inventory.Item {
		return inventory.Item{Name: name, Status: s, Version: "22.11"}
	}
	inv := &inventory.Inventory{
		Host: inventory.Host{NUMANodes: 2, Isolated: []int{2, 3, 4},
			HugePages: []inventory.HugePg{{Size: 2 << 20, Total: 512}, {Size: 1 << 30, Total: 4}}},
		Transports: []inventory.Transport{{Item: item("shm", inventory.OK)}, {Item: item("memif", inventory.Missing)}, {Item: item("vxlan", inventory.OK)}},
	}
	for status, versions := range map[inventory.Status]string{inventory.OK: "22.11", inventory.Missing: ""} {
		inv.DPDK = []inventory.Item{item(dpdk.NetDray, status)}
		d := resources("n1", 4, inv).Pools["n1"].Slices[0].Devices[0]
		if got := *d.Attributes["transports"].StringValue; got != "shm vxlan" {
			t.Errorf("transports %q", got)
		}
		got, known := d.Attributes["dpdk"]
		if known != (versions != "") || known && *got.StringValue != versions {
			t.Errorf("with a driver that is %s: %+v", status, got)
		}
		for name, want := range map[resourcev1.QualifiedName]int64{"numaNodes": 2, "isolatedCPUs": 3, "hugepages2Mi": 512, "hugepages1Gi": 4} {
			if n := d.Attributes[name].IntValue; n == nil || *n != want {
				t.Errorf("%s: %v", name, d.Attributes[name])
			}
		}
		if ports := d.Capacity[v1alpha1.CapacityPorts].Value; *d.Attributes[v1alpha1.AttributeNode].StringValue != "n1" || ports.Value() != maxPorts {
			t.Errorf("%+v", d)
		}
	}
}

// Ports queue what they send on shm alone: nodes make no other transport that does.
func TestPortQueuesOfANode(t *testing.T) {
	inv, err := inspect(t.Context(), offers{network: &nodenet.Info{Shapes: true}, sw: &nodeswitch.Info{}})
	must(t, err)
	for _, d := range all.All() {
		found := inv.Transport(d.Name())
		if queues := found.Caps.PortQueues && found.Status != inventory.Missing; queues != (d.Name() == shm.Name) {
			t.Errorf("%+v", found)
		}
	}
}

// A node shapes ports if its dray-net can: an older one cannot. It sets a token bucket alone.
func TestShapesOfANode(t *testing.T) {
	for _, network := range []*nodenet.Info{nil, {}, {Shapes: true}} {
		can := network != nil && network.Shapes
		for _, d := range all.All() {
			if got := (offers{network: network}).of(d); got.Status == inventory.OK && got.Caps.Shapes != can {
				t.Errorf("%+v: %+v", network, got)
			}
		}
		for _, q := range qdiscs(network) {
			if ok := q.Status == inventory.OK; ok != (can && q.Name == "tbf") || !ok && q.Reason == "" {
				t.Errorf("%+v: %+v", network, q)
			}
		}
	}
}
