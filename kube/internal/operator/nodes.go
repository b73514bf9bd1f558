// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/drayage/dray/internal/plan/fleet"
	"github.com/drayage/dray/kube/api/v1alpha1"
)

// nodes are the nodes with an inventory.
func (r *Reconciler) nodes(ctx context.Context) ([]fleet.Node, error) {
	var maps corev1.ConfigMapList
	if err := r.List(ctx, &maps, client.InNamespace(r.Namespace), client.MatchingLabels{v1alpha1.LabelInventory: "true"}); err != nil {
		return nil, err
	}
	all := make([]fleet.Node, 0, len(maps.Items))
	for i := range maps.Items {
		m := &maps.Items[i]
		all = append(all, fleet.ReadNode(ownerNode(m), m.Name, m.Data))
	}
	return all, nil
}

func ownerNode(m *corev1.ConfigMap) string {
	for _, o := range m.OwnerReferences {
		if o.Kind == "Node" {
			return o.Name
		}
	}
	return ""
}
