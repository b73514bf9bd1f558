// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/drayage/dray/internal/plan/fleet"
	"github.com/drayage/dray/internal/result/verdict"
	"github.com/drayage/dray/internal/spec/manifest"
)

// Chain is an object Chain, as far as it is shown.
type Chain struct {
	Metadata struct {
		Namespace  string `json:"namespace"`
		Name       string `json:"name"`
		UID        string `json:"uid"`
		Generation int64  `json:"generation"`

		Labels      map[string]string `json:"labels"`
		Annotations map[string]string `json:"annotations"`
	} `json:"metadata"`
	Spec   json.RawMessage `json:"spec"`
	Status struct {
		ObservedGeneration int64       `json:"observedGeneration"`
		Conditions         []Condition `json:"conditions"`
		Links              []Link      `json:"links"`
		Paths              []Path      `json:"paths"`
		// Placement is the nodes of the functions, if the chain asks for a placement.
		Placement []fleet.Spot `json:"placement"`
	} `json:"status"`
}

// Link is one link of a chain.
type Link struct {
	Name         string      `json:"name"`
	Transport    string      `json:"transport"`
	Ends         []End       `json:"ends"`
	Idle         bool        `json:"idle"` // a link of an instance that no pod has
	Requirements []Condition `json:"requirements"`
}

// Path is one path of a chain.
type Path struct {
	Name         string      `json:"name"`
	Links        []string    `json:"links"` // that the packets cross, in order
	Requirements []Condition `json:"requirements"`
}

// End is one end of a link. It has no pod until one claims the port.
type End struct {
	Function string `json:"function"`
	Port     string `json:"port"`
	Pod      string `json:"pod,omitempty"`
	Node     string `json:"node,omitempty"`
	// Transport is what the node has put behind the port; empty: it has not said.
	Transport string `json:"transport,omitempty"`
}

// Runs reports whether every end of the link has a pod on a node.
func (l *Link) Runs() bool {
	return !l.Idle && len(l.Ends) > 0 && !slices.ContainsFunc(l.Ends, func(e End) bool { return e.Pod == "" || e.Node == "" })
}

// crosses reports whether the link's ends are on different nodes.
func (l *Link) crosses() bool {
	return slices.ContainsFunc(l.Ends, func(e End) bool { return e.Node != l.Ends[0].Node })
}

// Name is "function.port".
func (e End) Name() string { return e.Function + "." + e.Port }

// Condition is a condition of a chain, or the verdict on a requirement of a link.
type Condition struct {
	Type    string    `json:"type"`
	Status  string    `json:"status"` // "True", "False", "Unknown"
	Reason  string    `json:"reason"`
	Message string    `json:"message"`
	Since   time.Time `json:"lastTransitionTime"`
	Seen    int64     `json:"observedGeneration,omitempty"` // generation of the chain that it is about
}

// Values of Condition.Status.
const (
	isTrue  = "True"
	isFalse = "False"
)

// Name is "namespace/name".
func (c *Chain) Name() string { return c.Metadata.Namespace + "/" + c.Metadata.Name }

// Condition is the condition of that type; without one, its status is empty.
func (c *Chain) Condition(kind string) Condition { return find(c.Status.Conditions, kind) }

func find(all []Condition, kind string) Condition {
	for _, one := range all {
		if one.Type == kind {
			return one
		}
	}
	return Condition{Type: kind}
}

// Link is the link of that name in the status; without one, it has no ends.
func (c *Chain) Link(name string) Link {
	for _, l := range c.Status.Links {
		if l.Name == name {
			return l
		}
	}
	return Link{Name: name}
}

// Nodes are the nodes with ends of the chain's links.
func (c *Chain) Nodes() []string {
	var nodes []string
	for _, l := range c.Status.Links {
		for _, e := range l.Ends {
			if e.Node != "" && !slices.Contains(nodes, e.Node) {
				nodes = append(nodes, e.Node)
			}
		}
	}
	return nodes
}

// Running are the nodes of the functions that have a pod on one.
func (c *Chain) Running() map[string]string {
	all := map[string]string{}
	for _, l := range c.Status.Links {
		for _, e := range l.Ends {
			if e.Node != "" {
				all[e.Function] = e.Node
			}
		}
	}
	return all
}

// Seen reports whether the status is about the chain as it is now.
func (c *Chain) Seen() bool {
	return c.Status.ObservedGeneration == c.Metadata.Generation && len(c.Status.Conditions) > 0
}

// Holds reports whether a condition is true.
func (c Condition) Holds() bool { return c.Status == isTrue }

// Word is the verdict that a requirement's condition stands for.
func (c Condition) Word() verdict.Word {
	switch c.Status {
	case isTrue:
		return verdict.Met
	case isFalse:
		return verdict.Missed
	}
	return verdict.NotMeasurable
}

// Chains are the chains of the namespace, or of all.
func (k *Kubectl) Chains(ctx context.Context, everywhere bool) ([]Chain, error) {
	where := in(k.Namespace)
	if everywhere {
		where = []string{"--all-namespaces"}
	}
	var list struct {
		Items []Chain `json:"items"`
	}
	err := k.get(ctx, &list, where, manifest.Resource)
	return list.Items, err
}

// Chain is one chain of the namespace.
func (k *Kubectl) Chain(ctx context.Context, name string) (*Chain, error) {
	return k.ChainIn(ctx, k.Namespace, name)
}

// ChainIn is one chain of a namespace.
func (k *Kubectl) ChainIn(ctx context.Context, namespace, name string) (*Chain, error) {
	var c Chain
	err := k.get(ctx, &c, in(namespace), manifest.Resource, name)
	if isMissing(err) {
		return nil, &Error{Text: fmt.Sprintf("there is no chain %q in this namespace", name), Fix: "kubectl dray status --all-namespaces"}
	}
	return &c, err
}
