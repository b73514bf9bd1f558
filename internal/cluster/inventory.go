// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"strconv"
	"strings"

	"github.com/drayage/dray/internal/plan/fleet"
	"github.com/drayage/dray/internal/spec/manifest"
	"github.com/drayage/dray/internal/spec/units"
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

// Places are the nodes with what they give to pods, as dray-operator places functions on them.
func (k *Kubectl) Places(ctx context.Context) ([]fleet.Machine, error) {
	var list struct {
		Items []struct {
			Metadata struct {
				Name   string            `json:"name"`
				Labels map[string]string `json:"labels"`
			} `json:"metadata"`
			Spec struct {
				Unschedulable bool `json:"unschedulable"`
			} `json:"spec"`
			Status struct {
				Allocatable struct {
					CPU    string `json:"cpu"`
					Memory string `json:"memory"`
				} `json:"allocatable"`
				Conditions []Condition `json:"conditions"`
			} `json:"status"`
		} `json:"items"`
	}
	if err := k.get(ctx, &list, nil, "nodes"); err != nil {
		return nil, err
	}
	var all []fleet.Machine
	for _, n := range list.Items {
		m := fleet.Machine{Name: n.Metadata.Name, Labels: n.Metadata.Labels, CPUs: wholeCPUs(n.Status.Allocatable.CPU)}
		if m.Memory, _ = units.ParseBytes(n.Status.Allocatable.Memory); n.Spec.Unschedulable { // the API server has checked it
			m.Closed = fleet.Cordoned
		} else if ready := find(n.Status.Conditions, "Ready"); ready.Status != "" && !ready.Holds() {
			m.Closed = fleet.NotReady
		}
		all = append(all, m)
	}
	return all, nil
}

// wholeCPUs are the whole CPUs of a quantity such as "4" or "3920m".
func wholeCPUs(quantity string) int {
	text, thousandths := strings.CutSuffix(quantity, "m")
	n, err := strconv.Atoi(text)
	if err != nil {
		return 0
	}
	if thousandths {
		n /= 1000
	}
	return n
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
