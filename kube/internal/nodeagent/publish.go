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
	"github.com/drayage/dray/internal/host"
	"github.com/drayage/dray/internal/link/all"
	"github.com/drayage/dray/internal/link/bridge"
	"github.com/drayage/dray/internal/link/ovsdpdk"
	"github.com/drayage/dray/internal/link/shm"
	"github.com/drayage/dray/internal/link/transport"
	"github.com/drayage/dray/internal/link/vxlan"
	"github.com/drayage/dray/internal/node/doctor"
	"github.com/drayage/dray/internal/spec/chain"
	"github.com/drayage/dray/internal/spec/inventory"
	"github.com/drayage/dray/kube/api/v1alpha1"
	"github.com/drayage/dray/kube/internal/nodenet"
	"github.com/drayage/dray/kube/internal/nodeswitch"
)

// fieldManager owns what this daemon writes.
const fieldManager = "dray-node"

// offers are what the other daemons of this node offer; nil: the daemon does not run.
type offers struct {
	network *nodenet.Info    // dray-net
	sw      *nodeswitch.Info // dray-switch
}

// inspect finds out what links this node can make.
func inspect(ctx context.Context, made offers) (*inventory.Inventory, error) {
	var own []transport.Driver
	for _, d := range all.All() {
		if d.Name() == shm.Name {
			own = append(own, d)
		}
	}
	inv, err := doctor.Inspect(ctx, own, []runtime.Runtime{external.New(dockercli.Client{})}, nil)
	if err != nil {
		return nil, err
	}
	for _, d := range all.All() {
		if inv.Transport(d.Name()) != nil {
			continue
		}
		inv.Transports = append(inv.Transports, made.of(d))
	}
	inv.Qdiscs = qdiscs(made.network)
	return inv, nil
}

// qdiscs are the queueing disciplines that interfaces can have: dray-net sets a token bucket alone.
// Ports of shm queue what they send in user space.
func qdiscs(network *nodenet.Info) []inventory.Item {
	var all []inventory.Item
	for _, kind := range host.QdiscKinds() {
		item := inventory.Item{Name: kind, Status: inventory.Missing, Reason: "nodes of a cluster set no " + kind}
		if kind == "tbf" && network != nil && network.Shapes {
			item = inventory.Item{Name: kind, Status: inventory.OK}
		}
		all = append(all, item)
	}
	return all
}

// of is a transport of another daemon, if it is one. Its links have two ends.
func (o offers) of(d transport.Driver) inventory.Transport {
	t := inventory.Transport{Caps: d.Caps(), Item: inventory.Item{Name: d.Name(), Status: inventory.Missing, Reason: "nodes of a cluster do not make it yet"}}
	switch d.Name() {
	case vxlan.Name, bridge.Name:
		t.Caps.Shapes = o.network != nil && o.network.Shapes
		t.Reason, t.Fix = "dray-net does not run on this node", "install the DaemonSet dray-net"
		if o.network != nil {
			t.Item = inventory.Item{Name: d.Name(), Status: inventory.OK}
		}
	case ovsdpdk.Name, ovsdpdk.NameTunnel:
		t.Reason, t.Fix = "dray-switch does not run on this node", "install it: kubectl apply -k kube/deploy/switch"
		if o.sw != nil {
			t.Item = inventory.Item{Name: d.Name(), Status: inventory.OK, Version: o.sw.Version}
		}
		// Its CPU and memory are those of its pod, for all links.
		t.Caps.Faces, t.Caps.Machines = []string{string(chain.FaceDPDK)}, false
		t.Caps.Shapes, t.Caps.BusyCPUs, t.Caps.PacketMemory, t.Caps.Processes = false, 0, nil, 0
	default:
		return t
	}
	t.Caps.MaxEnds = 2
	return t
}

// publishInventory lets the operator plan for this node. It writes what has changed, and
// reports whether anything has.
func (a *Agent) publishInventory(ctx context.Context) (changed bool, err error) {
	made, err := a.offers(ctx)
	calibrated := versionOf(a.o.Calibration)
	if before := a.published.Load(); err != nil || before != nil && before.calibrated == calibrated && reflect.DeepEqual(before.offers, made) {
		return false, err
	}
	inv, err := inspect(ctx, made)
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
	if made.network != nil {
		err = a.publish(ctx, fieldManager+"-network", node, v1alpha1.KeyNetwork, made.network)
	}
	if made.sw != nil {
		err = errors.Join(err, a.publish(ctx, fieldManager+"-switch", node, v1alpha1.KeySwitch, made.sw))
	}
	if err != nil {
		return false, err
	}
	logCalibration(a.o.Log, inv)
	a.published.Store(&published{made, calibrated, cpusOf(node, inv), inv})
	return true, nil
}

// published is what the operator and the scheduler know of this node.
type published struct {
	offers     offers
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

// offers are what the node offers to others now. Of a daemon that is away, as during an update,
// that is what it offered before.
func (a *Agent) offers(ctx context.Context) (now offers, err error) {
	now.network, err = offer(ctx, a, a.links.net.Info, nodenet.ErrAbsent, func(o offers) *nodenet.Info { return o.network }, v1alpha1.KeyNetwork)
	if err != nil {
		return now, err
	}
	now.sw, err = offer(ctx, a, a.links.sw.Info, nodeswitch.ErrAbsent, func(o offers) *nodeswitch.Info { return o.sw }, v1alpha1.KeySwitch)
	return now, err
}

// offer is what one daemon offers, or offered before. Only an instance that has published nothing yet asks the API
// server for that: most nodes have no switch, and they look every few seconds.
func offer[T any](ctx context.Context, a *Agent, ask func(context.Context) (T, error), absent error, of func(offers) *T, key string) (*T, error) {
	info, err := ask(ctx)
	if err == nil {
		return &info, nil
	}
	if !errors.Is(err, absent) {
		a.o.Log.Error("what the node offers", "key", key, "error", err)
	}
	if before := a.published.Load(); before != nil {
		return of(before.offers), nil
	}
	return publishedBefore[T](ctx, a, key)
}

// publishedBefore is what an earlier instance has published; nil if none did.
func publishedBefore[T any](ctx context.Context, a *Agent, key string) (*T, error) {
	m, err := a.o.Client.CoreV1().ConfigMaps(a.o.Namespace).Get(ctx, inventoryName(a.o.Node), metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	text, ok := "", false
	if err == nil {
		text, ok = m.Data[key]
	}
	if err != nil || !ok {
		return nil, err
	}
	var info T
	if err := json.Unmarshal([]byte(text), &info); err != nil {
		return nil, fmt.Errorf("%s in %s: %w", key, inventoryName(a.o.Node), err)
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
