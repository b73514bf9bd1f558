// SPDX-License-Identifier: Apache-2.0

package nodeagent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"
	applymetav1 "k8s.io/client-go/applyconfigurations/meta/v1"
	"k8s.io/dynamic-resource-allocation/resourceslice"

	"github.com/drayage/dray/internal/function/dockercli"
	"github.com/drayage/dray/internal/function/external"
	"github.com/drayage/dray/internal/function/runtime"
	"github.com/drayage/dray/internal/link/all"
	"github.com/drayage/dray/internal/link/bridge"
	"github.com/drayage/dray/internal/link/shm"
	"github.com/drayage/dray/internal/link/transport"
	"github.com/drayage/dray/internal/link/vxlan"
	"github.com/drayage/dray/internal/node/doctor"
	"github.com/drayage/dray/internal/spec/dpdk"
	"github.com/drayage/dray/internal/spec/inventory"
	"github.com/drayage/dray/internal/spec/release"
	"github.com/drayage/dray/kube/api/v1alpha1"
	"github.com/drayage/dray/kube/internal/nodenet"
)

// fieldManager owns what this daemon writes.
const fieldManager = "dray-node"

// maxPorts is how many ports a node serves. The broker has tested limits per
// link; this one bounds its threads and descriptors.
const maxPorts = 256

// resources is what the scheduler learns of this node: one device that many
// claims share, with a number of ports. Claims name the nodes that the operator has
// planned for; the other attributes are for people who look.
func resources(node string, inv *inventory.Inventory) resourceslice.DriverResources {
	many := true
	one, attribute := resource.MustParse("1"), func(s string) resourcev1.DeviceAttribute {
		return resourcev1.DeviceAttribute{StringValue: &s}
	}
	var transports []string
	for _, t := range inv.Transports {
		if t.Status == inventory.OK {
			transports = append(transports, t.Name)
		}
	}
	numa := int64(inv.Host.NUMANodes)
	device := resourcev1.Device{
		Name:                     v1alpha1.Device,
		AllowMultipleAllocations: &many,
		Attributes: map[resourcev1.QualifiedName]resourcev1.DeviceAttribute{
			v1alpha1.AttributeNode: attribute(node),
			"transports":           attribute(strings.Join(transports, " ")),
			"numaNodes":            {IntValue: &numa},
			"release":              attribute(release.Version()),
		},
		Capacity: map[resourcev1.QualifiedName]resourcev1.DeviceCapacity{
			v1alpha1.CapacityPorts: {Value: *resource.NewQuantity(maxPorts, resource.DecimalSI), RequestPolicy: &resourcev1.CapacityRequestPolicy{Default: &one}},
		},
	}
	if versions := driverOf(inv); versions != "" {
		device.Attributes["dpdk"] = attribute(versions)
	}
	return resourceslice.DriverResources{Pools: map[string]resourceslice.Pool{
		node: {Slices: []resourceslice.Slice{{Devices: []resourcev1.Device{device}}}},
	}}
}

// driverOf is the versions of DPDK for which the node has a driver; "" if it has none.
func driverOf(inv *inventory.Inventory) string {
	for _, d := range inv.DPDK {
		if d.Name == dpdk.NetDray && d.Status == inventory.OK {
			return d.Version
		}
	}
	return ""
}

// inspect finds out what links this node can make. network is nil without dray-net.
func inspect(ctx context.Context, network *nodenet.Info) (*inventory.Inventory, error) {
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
		if inv.Transport(d.Name()) != nil {
			continue
		}
		inv.Transports = append(inv.Transports, offered(d, network))
	}
	return inv, nil
}

// offered is a transport that dray-net makes, if it is one. It sets no queueing
// disciplines, and its links have two ends.
func offered(d transport.Driver, network *nodenet.Info) inventory.Transport {
	t := inventory.Transport{Caps: d.Caps(), Item: inventory.Item{Name: d.Name(), Status: inventory.Missing, Reason: "nodes of a cluster do not make it yet"}}
	if d.Name() != vxlan.Name && d.Name() != bridge.Name {
		return t
	}
	t.Caps.Shapes, t.Caps.MaxEnds = false, 2
	t.Reason, t.Fix = "dray-net does not run on this node", "install the DaemonSet dray-net"
	if network != nil {
		t.Item = inventory.Item{Name: d.Name(), Status: inventory.OK}
	}
	return t
}

// publishInventory lets the operator plan for this node. It writes what has changed.
func (a *Agent) publishInventory(ctx context.Context) error {
	network, err := a.network(ctx)
	if before := a.published.Load(); err != nil || before != nil && reflect.DeepEqual(before.network, network) {
		return err
	}
	inv, err := inspect(ctx, network)
	if err != nil {
		return fmt.Errorf("inspect the node: %w", err)
	}
	inv.Host.Hostname = a.o.Node
	a.specs.dpdk.describe(inv)
	node, err := a.o.Client.CoreV1().Nodes().Get(ctx, a.o.Node, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("publish the inventory of the node: %w", err)
	}
	if err := a.publish(ctx, fieldManager, node, v1alpha1.KeyInventory, inv); err != nil {
		return err
	}
	if network != nil {
		if err := a.publish(ctx, fieldManager+"-network", node, v1alpha1.KeyNetwork, network); err != nil {
			return err
		}
	}
	a.published.Store(&published{network, inv})
	return nil
}

// published is what the operator knows of this node.
type published struct {
	network   *nodenet.Info
	inventory *inventory.Inventory
}

// network is what the node offers to other nodes. If dray-net is away, as during an
// update, that is what it offered before; nil if it never did.
func (a *Agent) network(ctx context.Context) (*nodenet.Info, error) {
	info, err := a.links.net.Info(ctx)
	if err == nil {
		return &info, nil
	}
	if !errors.Is(err, nodenet.ErrAbsent) {
		return nil, err
	}
	if before := a.published.Load(); before != nil {
		return before.network, nil
	}
	return a.publishedBefore(ctx)
}

// publishedBefore is the network that an earlier instance has published; nil if none did.
func (a *Agent) publishedBefore(ctx context.Context) (*nodenet.Info, error) {
	m, err := a.o.Client.CoreV1().ConfigMaps(a.o.Namespace).Get(ctx, inventoryName(a.o.Node), metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	text, ok := "", false
	if err == nil {
		text, ok = m.Data[v1alpha1.KeyNetwork]
	}
	if err != nil || !ok {
		return nil, err
	}
	var info nodenet.Info
	if err := json.Unmarshal([]byte(text), &info); err != nil {
		return nil, fmt.Errorf("the network in %s: %w", inventoryName(a.o.Node), err)
	}
	return &info, nil
}

// publish writes one key of the node's ConfigMap, which is deleted with the node. Each key
// has a manager of its own, so that writing one does not remove the other.
func (a *Agent) publish(ctx context.Context, manager string, node *corev1.Node, key string, v any) error {
	text, err := json.Marshal(v)
	if err != nil {
		return err
	}
	apply := applycorev1.ConfigMap(inventoryName(a.o.Node), a.o.Namespace).
		WithLabels(map[string]string{v1alpha1.LabelInventory: "true"}).
		WithData(map[string]string{key: string(text)}).
		WithOwnerReferences(applymetav1.OwnerReference().WithAPIVersion("v1").WithKind("Node").WithName(node.Name).WithUID(node.UID))
	_, err = a.o.Client.CoreV1().ConfigMaps(a.o.Namespace).Apply(ctx, apply, metav1.ApplyOptions{FieldManager: manager, Force: true})
	if err != nil {
		return fmt.Errorf("publish the inventory of the node: %w", err)
	}
	return nil
}

func inventoryName(node string) string { return "dray-inventory-" + node }
