// SPDX-License-Identifier: Apache-2.0

package nodeagent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"
	applymetav1 "k8s.io/client-go/applyconfigurations/meta/v1"

	"github.com/drayage/dray/internal/function/dockercli"
	"github.com/drayage/dray/internal/function/external"
	"github.com/drayage/dray/internal/function/runtime"
	"github.com/drayage/dray/internal/link/all"
	"github.com/drayage/dray/internal/link/bridge"
	"github.com/drayage/dray/internal/link/shm"
	"github.com/drayage/dray/internal/link/transport"
	"github.com/drayage/dray/internal/link/vxlan"
	"github.com/drayage/dray/internal/node/doctor"
	"github.com/drayage/dray/internal/spec/inventory"
	"github.com/drayage/dray/kube/api/v1alpha1"
	"github.com/drayage/dray/kube/internal/nodenet"
)

// fieldManager owns what this daemon writes.
const fieldManager = "dray-node"

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

// publishInventory lets the operator plan for this node. It writes what has changed, and
// reports whether anything has.
func (a *Agent) publishInventory(ctx context.Context) (changed bool, err error) {
	network, err := a.network(ctx)
	calibrated := versionOf(a.o.Calibration)
	if before := a.published.Load(); err != nil || before != nil && before.calibrated == calibrated && reflect.DeepEqual(before.network, network) {
		return false, err
	}
	inv, err := inspect(ctx, network)
	if err != nil {
		return false, fmt.Errorf("inspect the node: %w", err)
	}
	inv.Host.Hostname = a.o.Node
	a.specs.dpdk.describe(inv)
	recallCalibration(inv, a.o.Calibration)
	node, err := a.o.Client.CoreV1().Nodes().Get(ctx, a.o.Node, metav1.GetOptions{})
	if err != nil {
		return false, fmt.Errorf("publish the inventory of the node: %w", err)
	}
	if err := a.publish(ctx, fieldManager, node, v1alpha1.KeyInventory, inv); err != nil {
		return false, err
	}
	if network != nil {
		if err := a.publish(ctx, fieldManager+"-network", node, v1alpha1.KeyNetwork, network); err != nil {
			return false, err
		}
	}
	logCalibration(a.o.Log, inv)
	a.published.Store(&published{network, calibrated, cpusOf(node, inv), inv})
	return true, nil
}

// published is what the operator and the scheduler know of this node.
type published struct {
	network    *nodenet.Info
	calibrated version // of the file
	cpus       int     // that Kubernetes gives to pods
	inventory  *inventory.Inventory
}

// cpusOf is how many whole CPUs pods of a node can have.
func cpusOf(node *corev1.Node, inv *inventory.Inventory) int {
	if cpus, ok := node.Status.Allocatable[corev1.ResourceCPU]; ok {
		return int(cpus.MilliValue() / 1000)
	}
	return len(inv.Host.CPUs)
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
