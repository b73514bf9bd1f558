// SPDX-License-Identifier: Apache-2.0

package nodeagent

import (
	"context"
	"encoding/json"
	"fmt"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/dynamic-resource-allocation/resourceslice"

	"github.com/drayage/dray/internal/function/dockercli"
	"github.com/drayage/dray/internal/function/external"
	"github.com/drayage/dray/internal/function/runtime"
	"github.com/drayage/dray/internal/link/all"
	"github.com/drayage/dray/internal/link/shm"
	"github.com/drayage/dray/internal/link/transport"
	"github.com/drayage/dray/internal/node/doctor"
	"github.com/drayage/dray/internal/spec/inventory"
	"github.com/drayage/dray/internal/spec/release"
	"github.com/drayage/dray/kube/api/v1alpha1"
)

// fieldManager owns what this daemon writes.
const fieldManager = "dray-node"

// maxPorts is how many ports a node serves. The broker has tested limits per
// link; this one bounds its threads and descriptors.
const maxPorts = 256

// resources is what the scheduler learns of this node: one device that many
// claims share, with a number of ports.
func resources(node string) resourceslice.DriverResources {
	many := true
	one, attribute := resource.MustParse("1"), func(s string) resourcev1.DeviceAttribute {
		return resourcev1.DeviceAttribute{StringValue: &s}
	}
	device := resourcev1.Device{
		Name:                     v1alpha1.Device,
		AllowMultipleAllocations: &many,
		Attributes: map[resourcev1.QualifiedName]resourcev1.DeviceAttribute{
			v1alpha1.AttributeNode: attribute(node),
			"transports":           attribute(shm.Name),
			"release":              attribute(release.Version()),
		},
		Capacity: map[resourcev1.QualifiedName]resourcev1.DeviceCapacity{
			v1alpha1.CapacityPorts: {Value: *resource.NewQuantity(maxPorts, resource.DecimalSI), RequestPolicy: &resourcev1.CapacityRequestPolicy{Default: &one}},
		},
	}
	return resourceslice.DriverResources{Pools: map[string]resourceslice.Pool{
		node: {Slices: []resourceslice.Slice{{Devices: []resourcev1.Device{device}}}},
	}}
}

// inspect finds out what links this node can make.
func inspect(ctx context.Context) (*inventory.Inventory, error) {
	var made []transport.Driver
	for _, d := range all.All() {
		if d.Name() == shm.Name {
			made = append(made, d)
		}
	}
	inv, err := doctor.Inspect(ctx, made, []runtime.Runtime{external.New(dockercli.Client{})}, nil)
	if err != nil {
		return nil, err
	}
	for _, d := range all.All() {
		if inv.Transport(d.Name()) == nil {
			inv.Transports = append(inv.Transports, inventory.Transport{Caps: d.Caps(), Item: inventory.Item{
				Name: d.Name(), Status: inventory.Missing, Reason: "nodes of a cluster do not make it yet",
			}})
		}
	}
	return inv, nil
}

// publishInventory lets the operator plan for this node.
func (a *Agent) publishInventory(ctx context.Context) error {
	inv, err := inspect(ctx)
	if err != nil {
		return fmt.Errorf("inspect the node: %w", err)
	}
	inv.Host.Hostname = a.o.Node
	data, err := json.Marshal(inv)
	if err != nil {
		return err
	}
	apply := applycorev1.ConfigMap(inventoryName(a.o.Node), a.o.Namespace).
		WithLabels(map[string]string{v1alpha1.LabelInventory: "true"}).
		WithData(map[string]string{v1alpha1.KeyInventory: string(data)})
	_, err = a.o.Client.CoreV1().ConfigMaps(a.o.Namespace).Apply(ctx, apply, metav1.ApplyOptions{FieldManager: fieldManager, Force: true})
	if err != nil {
		return fmt.Errorf("publish the inventory of the node: %w", err)
	}
	return nil
}

func inventoryName(node string) string { return "dray-inventory-" + node }
