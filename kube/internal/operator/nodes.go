// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/drayage/dray/internal/spec/chain"
	"github.com/drayage/dray/internal/spec/inventory"
	"github.com/drayage/dray/kube/api/v1alpha1"
)

// node is a node that has published its inventory.
type node struct {
	name      string
	inventory *inventory.Inventory
	fault     string // why the inventory cannot be used, or ""
}

// nodes are the nodes with an inventory, by name.
func (r *Reconciler) nodes(ctx context.Context) ([]node, error) {
	var maps corev1.ConfigMapList
	if err := r.List(ctx, &maps, client.InNamespace(r.Namespace), client.MatchingLabels{v1alpha1.LabelInventory: "true"}); err != nil {
		return nil, err
	}
	all := make([]node, 0, len(maps.Items))
	for i := range maps.Items {
		all = append(all, nodeOf(&maps.Items[i]))
	}
	slices.SortFunc(all, func(a, b node) int { return cmp.Compare(a.name, b.name) })
	return all, nil
}

// nodeOf reads an inventory. Its owner is its node; without an owner, the host's name is
// the node's.
func nodeOf(m *corev1.ConfigMap) node {
	var inv inventory.Inventory
	if err := json.Unmarshal([]byte(m.Data[v1alpha1.KeyInventory]), &inv); err != nil {
		return node{name: cmp.Or(ownerNode(m), m.Name), fault: "its inventory cannot be read: " + err.Error()}
	}
	n := node{name: cmp.Or(ownerNode(m), inv.Host.Hostname, m.Name), inventory: &inv}
	inv.Host.Hostname = n.name
	// The kubelet runs the pods, whatever runtimes dray itself would find there.
	inv.Runtimes = []inventory.Item{{Name: string(chain.RuntimeExternal), Status: inventory.OK}}
	return n
}

func ownerNode(m *corev1.ConfigMap) string {
	for _, o := range m.OwnerReferences {
		if o.Kind == "Node" {
			return o.Name
		}
	}
	return ""
}
