// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"

	"github.com/drayage/dray/internal/plan/fleet"
	"github.com/drayage/dray/internal/spec/manifest"
)

// Nodes are the nodes that have published their inventories.
func (k *Kubectl) Nodes(ctx context.Context) ([]fleet.Node, error) {
	var list struct {
		Items []struct {
			Metadata struct {
				Name   string `json:"name"`
				Owners []struct {
					Kind string `json:"kind"`
					Name string `json:"name"`
				} `json:"ownerReferences"`
			} `json:"metadata"`
			Data map[string]string `json:"data"`
		} `json:"items"`
	}
	if err := k.get(ctx, &list, append(in(k.System), "--selector="+manifest.LabelInventory+"=true"), "configmaps"); err != nil {
		return nil, err
	}
	var nodes []fleet.Node
	for _, m := range list.Items {
		owner := ""
		for _, o := range m.Metadata.Owners {
			if o.Kind == "Node" {
				owner = o.Name
			}
		}
		nodes = append(nodes, fleet.ReadNode(owner, m.Metadata.Name, m.Data))
	}
	return nodes, nil
}

// Machine is what the kubelet says of its node: dray-node sees only its own container's root file system.
type Machine struct {
	Runtime string `json:"containerRuntimeVersion"` // of containers, with its version
	OS      string `json:"osImage"`
}

// Machines are the nodes as their kubelets describe them, by name.
func (k *Kubectl) Machines(ctx context.Context) (map[string]Machine, error) {
	var list struct {
		Items []struct {
			Metadata struct {
				Name string `json:"name"`
			} `json:"metadata"`
			Status struct {
				Info Machine `json:"nodeInfo"`
			} `json:"status"`
		} `json:"items"`
	}
	if err := k.get(ctx, &list, nil, "nodes"); err != nil {
		return nil, err
	}
	machines := map[string]Machine{}
	for _, n := range list.Items {
		machines[n.Metadata.Name] = n.Status.Info
	}
	return machines, nil
}
