// SPDX-License-Identifier: Apache-2.0

package nodeagent

import (
	"slices"
	"strings"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/dynamic-resource-allocation/resourceslice"

	"github.com/drayage/dray/internal/plan"
	"github.com/drayage/dray/internal/spec/dpdk"
	"github.com/drayage/dray/internal/spec/inventory"
	"github.com/drayage/dray/internal/spec/release"
	"github.com/drayage/dray/kube/api/v1alpha1"
)

// maxPorts is how many ports a node serves. The broker has tested limits per
// link; this one bounds its threads and descriptors.
const maxPorts = 256

// unlimited is the rate of a node that is not calibrated: more than any node carries. A
// capacity must be there, because nothing satisfies a claim for one that is missing.
const unlimited = 1e15

type (
	attributes = map[resourcev1.QualifiedName]resourcev1.DeviceAttribute
	capacities = map[resourcev1.QualifiedName]resourcev1.DeviceCapacity
)

// resources is what the scheduler learns of this node: one device that many claims share,
// with a number of ports, and of each transport the rates that the node's CPUs can carry.
// Claims name the nodes that the operator has planned for; attributes are for people who look.
func resources(node string, cpus int, inv *inventory.Inventory) resourceslice.DriverResources {
	many := true
	device := resourcev1.Device{
		Name:                     v1alpha1.Device,
		AllowMultipleAllocations: &many,
		Attributes:               attributesOf(node, inv),
		Capacity:                 capacities{v1alpha1.CapacityPorts: capacity(maxPorts, 1, 1, maxPorts)},
	}
	for _, t := range localTransports(inv) {
		r := plan.Calibrated(inv, t)
		device.Capacity[v1alpha1.CapacityBitrate(t)] = rate(uint64(r.Bitrate), cpus)
		device.Capacity[v1alpha1.CapacityPacketRate(t)] = rate(uint64(r.PacketRate), cpus)
	}
	return resourceslice.DriverResources{Pools: map[string]resourceslice.Pool{
		node: {Slices: []resourceslice.Slice{{Devices: []resourcev1.Device{device}}}},
	}}
}

// localTransports are those that work here and join pods of one node. Claims ask for their rates:
// where a link's other end will be is not known when the scheduler chooses.
func localTransports(inv *inventory.Inventory) []string {
	var names []string
	for _, t := range inv.Transports {
		if t.Status == inventory.OK && !t.Caps.Tunnel {
			names = append(names, t.Name)
		}
	}
	return names
}

// rate is the capacity of a node's CPUs if one port at its calibrated rate keeps one of them
// busy. Calibration keeps two busy, or shares one: so a link at that rate always fits.
func rate(calibrated uint64, cpus int) resourcev1.DeviceCapacity {
	ports := uint64(max(2, cpus))
	if calibrated == 0 || calibrated > unlimited/ports {
		return capacity(unlimited, 0, 0, unlimited)
	}
	return capacity(int64(calibrated*ports), 0, 0, int64(calibrated))
}

// capacity is one of which a request takes some, between least and most.
func capacity(value, unsaid, least, most int64) resourcev1.DeviceCapacity {
	q := func(n int64) *resource.Quantity { return resource.NewQuantity(n, resource.DecimalSI) }
	return resourcev1.DeviceCapacity{Value: *q(value), RequestPolicy: &resourcev1.CapacityRequestPolicy{
		Default: q(unsaid), ValidRange: &resourcev1.CapacityRequestPolicyRange{Min: q(least), Max: q(most)},
	}}
}

func attributesOf(node string, inv *inventory.Inventory) attributes {
	a := attributes{
		v1alpha1.AttributeNode: text(node),
		"release":              text(release.Version()),
		"numaNodes":            number(int64(inv.Host.NUMANodes)),
		"isolatedCPUs":         number(int64(len(inv.Host.Isolated))),
	}
	for _, h := range inv.Host.HugePages {
		size := resource.NewQuantity(int64(h.Size), resource.BinarySI).String()
		a[resourcev1.QualifiedName("hugepages"+size)] = number(int64(h.Total))
	}
	var works, calibrated []string
	for _, t := range inv.Transports {
		if t.Status == inventory.OK {
			works = append(works, t.Name)
		}
	}
	for _, c := range inv.Calibration {
		if c.Stale != "" || !slices.Contains(works, c.Transport) {
			continue
		}
		calibrated = append(calibrated, c.Transport)
		for _, p := range c.Latency {
			if p.Percentile == 99 {
				a[v1alpha1.AttributeLatency(c.Transport)] = number(int64(p.Latency))
			}
		}
	}
	optional := map[resourcev1.QualifiedName]string{"transports": join(works), "calibrated": join(calibrated), "dpdk": driverOf(inv)}
	for name, s := range optional {
		if s != "" {
			a[name] = text(s)
		}
	}
	return a
}

func join(names []string) string { return strings.Join(slices.Sorted(slices.Values(names)), " ") }

func text(s string) resourcev1.DeviceAttribute { return resourcev1.DeviceAttribute{StringValue: &s} }

func number(n int64) resourcev1.DeviceAttribute { return resourcev1.DeviceAttribute{IntValue: &n} }

// driverOf is the versions of DPDK for which the node has a driver; "" if it has none.
func driverOf(inv *inventory.Inventory) string {
	for _, d := range inv.DPDK {
		if d.Name == dpdk.NetDray && d.Status == inventory.OK {
			return d.Version
		}
	}
	return ""
}
