// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/drayage/dray/internal/plan"
	"github.com/drayage/dray/internal/spec/chain"
	"github.com/drayage/dray/kube/api/v1alpha1"
	"github.com/drayage/dray/kube/internal/chainspec"
)

// decision is what becomes of a chain.
type decision struct {
	planned metav1.Condition
	chain   *chain.Chain // nil: the spec is invalid
	plan    *plan.Plan   // nil: there are no templates
	nodes   []string     // on which the plan is feasible
}

// decide plans the chain on every node.
func (r *Reconciler) decide(ctx context.Context, c *v1alpha1.Chain) (decision, error) {
	parsed, err := chainspec.Parse(c.Name, c.Spec.Raw)
	if err != nil {
		return invalid(err), nil
	}
	nodes, err := r.nodes(ctx)
	if err != nil {
		return decision{}, fmt.Errorf("inventories: %w", err)
	}
	if len(nodes) == 0 {
		return refused(parsed, v1alpha1.ReasonNoNode, "no node has published an inventory: is the DaemonSet dray-node running?"), nil
	}
	best, refusals := choose(parsed, nodes)
	if best == nil {
		return refused(parsed, v1alpha1.ReasonInfeasible, strings.Join(refusals, ". ")), nil
	}
	message := "on " + namesOf(best.nodes)
	if len(best.plan.Warnings) > 0 {
		message += "; warning: " + strings.Join(best.plan.Warnings, "; ")
	}
	if len(refusals) > 0 {
		message += "; not on " + strings.Join(refusals, "; ")
	}
	d := decision{chain: parsed, plan: best.plan, nodes: best.nodes}
	d.planned = condition(v1alpha1.ConditionPlanned, metav1.ConditionTrue, v1alpha1.ReasonPlanned, message)
	return d, nil
}

func invalid(err error) decision { return refused(nil, v1alpha1.ReasonInvalid, err.Error()) }

func refused(c *chain.Chain, reason, message string) decision {
	return decision{chain: c, planned: condition(v1alpha1.ConditionPlanned, metav1.ConditionFalse, reason, message)}
}

// group is a set of nodes on which a chain has the same links.
type group struct {
	plan  *plan.Plan
	nodes []string
}

// choose plans the chain on each node. It returns the largest group of nodes with the
// same plan, of two the one with the first node; nil if there is none. The refusals are
// one text for all nodes that refuse for one reason.
func choose(c *chain.Chain, nodes []node) (best *group, refusals []string) {
	groups, order := map[string]*group{}, []*group(nil)
	why, reasons := map[string][]string{}, []string(nil)
	for _, n := range nodes {
		p, refusal := planOn(c, n)
		if refusal != "" {
			if why[refusal] == nil {
				reasons = append(reasons, refusal)
			}
			why[refusal] = append(why[refusal], n.name)
			continue
		}
		key := signature(bareLinks(p)...)
		if groups[key] == nil {
			groups[key] = &group{plan: p}
			order = append(order, groups[key])
		}
		groups[key].nodes = append(groups[key].nodes, n.name)
	}
	for _, g := range order {
		if best == nil || len(g.nodes) > len(best.nodes) {
			best = g
		}
	}
	for _, g := range order {
		if g != best {
			refusals = append(refusals, namesOf(g.nodes)+": its links would differ from those on "+best.nodes[0])
		}
	}
	for _, reason := range reasons {
		refusals = append(refusals, namesOf(why[reason])+": "+reason)
	}
	return best, refusals
}

// planOn plans a chain on one node, or says why that is impossible.
func planOn(c *chain.Chain, n node) (*plan.Plan, string) {
	if n.fault != "" {
		return nil, n.fault
	}
	p, err := plan.Make(c, n.inventory)
	var infeasible *plan.Infeasible
	switch {
	case errors.As(err, &infeasible):
		return nil, violations(p)
	case err != nil:
		return nil, err.Error()
	}
	return p, ""
}

func violations(p *plan.Plan) string {
	texts := make([]string, len(p.Violations))
	for i, v := range p.Violations {
		texts[i] = v.String()
	}
	return strings.Join(texts, ". ")
}

// bare is a link without the reasons for its transport: they differ from node to node
// and from day to day, and a claim has little space. What is required remains.
func bare(l plan.Link) plan.Link {
	l.Reason, l.Rejected = "", nil
	evidence := l.Evidence
	l.Evidence = nil
	for _, e := range evidence {
		l.Evidence = append(l.Evidence, plan.Evidence{Requirement: e.Requirement, Required: e.Required})
	}
	return l
}

func bareLinks(p *plan.Plan) []plan.Link {
	links := make([]plan.Link, len(p.Links))
	for i, l := range p.Links {
		links[i] = bare(l)
	}
	return links
}

// signature is equal for equal links.
func signature(links ...plan.Link) string {
	text, err := json.Marshal(links)
	if err != nil {
		panic("a planned link: " + err.Error()) // it holds only text and numbers
	}
	return string(text)
}

// namesOf lists some names: "n1, n2, n3 and 7 more".
func namesOf(names []string) string {
	const most = 5
	if len(names) <= most {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
}
