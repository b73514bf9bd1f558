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

// Runtimes are the container runtimes of the nodes, with their versions.
func (k *Kubectl) Runtimes(ctx context.Context) (map[string]string, error) {
	var list struct {
		Items []struct {
			Metadata struct {
				Name string `json:"name"`
			} `json:"metadata"`
			Status struct {
				Info struct {
					Runtime string `json:"containerRuntimeVersion"`
				} `json:"nodeInfo"`
			} `json:"status"`
		} `json:"items"`
	}
	if err := k.get(ctx, &list, nil, "nodes"); err != nil {
		return nil, err
	}
	runtimes := map[string]string{}
	for _, n := range list.Items {
		runtimes[n.Metadata.Name] = n.Status.Info.Runtime
	}
	return runtimes, nil
}
