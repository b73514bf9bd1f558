// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/drayage/dray/internal/measure/live"
	"github.com/drayage/dray/internal/spec/manifest"
)

// Agent is the pod of dray-node on a node.
type Agent struct{ Pod, Node, Image string }

// Agents are the pods of dray-node that are ready, by node.
func (k *Kubectl) Agents(ctx context.Context) (map[string]Agent, error) {
	var list struct {
		Items []struct {
			Metadata struct {
				Name     string    `json:"name"`
				Created  time.Time `json:"creationTimestamp"`
				Deletion string    `json:"deletionTimestamp"`
			} `json:"metadata"`
			Spec struct {
				NodeName   string `json:"nodeName"`
				Containers []struct {
					Name  string `json:"name"`
					Image string `json:"image"`
				} `json:"containers"`
			} `json:"spec"`
			Status struct {
				Conditions []Condition `json:"conditions"`
			} `json:"status"`
		} `json:"items"`
	}
	if err := k.get(ctx, &list, append(in(k.System), "--selector="+manifest.LabelName+"="+manifest.NodeProgram), "pods"); err != nil {
		return nil, err
	}
	agents, newest := map[string]Agent{}, map[string]time.Time{}
	for _, p := range list.Items {
		node := p.Spec.NodeName
		ready := find(p.Status.Conditions, "Ready").Holds() && p.Metadata.Deletion == ""
		// During a rollout, a node has two.
		if ready && !p.Metadata.Created.Before(newest[node]) {
			agents[node], newest[node] = Agent{Pod: p.Metadata.Name, Node: node}, p.Metadata.Created
			for _, c := range p.Spec.Containers {
				if c.Name == manifest.NodeContainer {
					agents[node] = Agent{p.Metadata.Name, node, c.Image}
				}
			}
		}
	}
	return agents, nil
}

// Links is the latest sample of a node's links.
func (k *Kubectl) Links(ctx context.Context, a Agent) (live.Sample, error) {
	var s live.Sample
	path := fmt.Sprintf("/api/v1/namespaces/%s/pods/%s:%d/proxy/links", k.System, a.Pod, manifest.NodePort)
	text, err := k.output(ctx, "get", "--raw", path)
	if err == nil {
		err = json.Unmarshal(text, &s)
	}
	if err != nil {
		return s, fmt.Errorf("node %s: %w", a.Node, err)
	}
	return s, nil
}
