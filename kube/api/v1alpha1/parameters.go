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
// one request for each port.
type PortParameters struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Chain      string `json:"chain"`
	Function   string `json:"function"`
	Port       string `json:"port"`
	// Link is the planned link of the port, with both ends.
	Link plan.Link `json:"link"`
}

// NewPortParameters are the parameters of one port.
func NewPortParameters(chain, function, port string, link plan.Link) PortParameters {
	return PortParameters{
		APIVersion: GroupVersion.String(), Kind: KindPortParameters,
		Chain: chain, Function: function, Port: port, Link: link,
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
	if p.End() < 0 {
		return nil, errors.New("the parameters name a port that is no end of their link")
	}
	return &p, nil
}

// End is the index of the port in the ends of its link; -1 if it is none.
func (p *PortParameters) End() int {
	return slices.IndexFunc(p.Link.Ends, func(e plan.End) bool { return e.Function == p.Function && e.Port == p.Port })
}
