// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"context"
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/drayage/dray/internal/plan"
	"github.com/drayage/dray/internal/plan/fleet"
	"github.com/drayage/dray/internal/spec/chain"
	"github.com/drayage/dray/internal/spec/manifest"
	"github.com/drayage/dray/kube/api/v1alpha1"
)

// decision is what becomes of a chain.
type decision struct {
	planned metav1.Condition
	chain   *chain.Chain // nil: the spec is invalid
	plan    *plan.Plan   // nil: there are no templates
	across  fleet.Across // its links between nodes
	nodes   []string     // on which the plan is feasible
	// spots are the nodes of its functions; nil: it asks for no placement.
	spots []v1alpha1.FunctionPlacement
	// withheld is why there are no templates although the chain is planned, or "".
	withheld string
}

// decide plans the chain on every node, and places its functions if it asks for that.
func (r *Reconciler) decide(ctx context.Context, c *v1alpha1.Chain, claims []claim) (decision, error) {
	parsed, err := manifest.Parse(c.Name, c.Spec.Raw)
	if err != nil {
		return invalid(err), nil
	}
	wanted, err := manifest.ParsePlacement(c.Spec.Raw)
	if err != nil {
		return invalid(err), nil
	}
	nodes, err := r.nodes(ctx)
	if err != nil {
		return decision{}, fmt.Errorf("inventories: %w", err)
	}
	choice := fleet.Choose(fleet.Plan(parsed, nodes))
	switch {
	case len(nodes) == 0:
		return refused(parsed, v1alpha1.ReasonNoNode, choice.String()), nil
	case choice.Plan == nil:
		return refused(parsed, v1alpha1.ReasonInfeasible, choice.String()), nil
	}
	d := decision{chain: parsed, plan: choice.Plan, across: choice.Across, nodes: choice.Nodes}
	d.planned = condition(v1alpha1.ConditionPlanned, metav1.ConditionTrue, v1alpha1.ReasonPlanned, choice.String())
	if wanted == nil {
		if len(choice.Across.Paths) > 0 {
			d.planned.Message = clip(d.planned.Message+"; warning: "+strings.Join(choice.Across.Paths, "; "), maxMessage)
		}
		return d, nil
	}
	return r.place(ctx, c, d, choice, wanted, nodes, claims)
}

func invalid(err error) decision { return refused(nil, v1alpha1.ReasonInvalid, err.Error()) }

func refused(c *chain.Chain, reason, message string) decision {
	return decision{chain: c, planned: condition(v1alpha1.ConditionPlanned, metav1.ConditionFalse, reason, message)}
}
