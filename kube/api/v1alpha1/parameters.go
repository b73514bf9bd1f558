// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/drayage/dray/internal/plan"
)

// KindPortParameters is the kind of the opaque parameters of a request.
const KindPortParameters = "PortParameters"

// PortParameters tell a node which port a request of a ResourceClaim stands
// for. The operator writes them into a function's ResourceClaimTemplate, with
// one request for each port. If the function has instances, there are parameters of each
// instance for each request. The status of the chain says which of them count.
type PortParameters struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Chain      string `json:"chain"`
	Function   string `json:"function"`
	// Of is the function of the chain's spec of which Function is an instance; empty if it
	// has no instances.
	Of   string `json:"of,omitempty"`
	Port string `json:"port"`
	// Link is the planned link of the port, with both ends, if both are on one node.
	Link plan.Link `json:"link"`
	// Across is the same link if its ends are on different nodes; nil: it cannot be.
	Across *plan.Link `json:"across,omitempty"`
}

// NewPortParameters are the parameters of one port of a function that has no instances.
func NewPortParameters(chain, function, port string, link plan.Link, across *plan.Link) PortParameters {
	return PortParameters{
		APIVersion: GroupVersion.String(), Kind: KindPortParameters,
		Chain: chain, Function: function, Port: port, Link: link, Across: across,
	}
}

// ParsePortParameters reads the parameters of a request. Anyone who can
// create a claim can write them, so nothing in them is trusted.
func ParsePortParameters(data []byte) (*PortParameters, error) {
	var p PortParameters
	if err := json.Unmarshal(data, &p); err != nil {
		return nil, fmt.Errorf("the parameters of the request are not PortParameters: %w", err)
	}
	if p.APIVersion != GroupVersion.String() || p.Kind != KindPortParameters {
		return nil, fmt.Errorf("the parameters are %s %s, not %s %s: take the claim from the template that the operator made",
			p.APIVersion, p.Kind, GroupVersion, KindPortParameters)
	}
	return &p, p.Check()
}

// Check refuses parameters that do not describe one port of a link.
func (p *PortParameters) Check() error {
	if n := len(p.Link.Ends); n != 0 && n != 2 {
		return fmt.Errorf("link %s has %d ends: nodes make only links between two ports so far", p.Link.Name, n)
	}
	if p.End() < 0 {
		return errors.New("the parameters name a port that is no end of their link")
	}
	if a := p.Across; a != nil && !slices.EqualFunc(a.Ends, p.Link.Ends, samePort) {
		return errors.New("the parameters describe two different links")
	}
	return nil
}

// samePort reports whether two ends are the same port with the same addresses.
func samePort(a, b plan.End) bool {
	return a.Function == b.Function && a.Port == b.Port && a.MAC == b.MAC && a.IP == b.IP && a.MTU == b.MTU && a.Queues == b.Queues
}

// End is the index of the port in the ends of its link; -1 if it is none.
func (p *PortParameters) End() int {
	return slices.IndexFunc(p.Link.Ends, func(e plan.End) bool { return e.Function == p.Function && e.Port == p.Port })
}
