// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"

	"github.com/spf13/cobra"

	"github.com/drayage/dray/internal/cluster"
	"github.com/drayage/dray/internal/plan"
	"github.com/drayage/dray/internal/plan/fleet"
	"github.com/drayage/dray/internal/spec/chain"
	"github.com/drayage/dray/internal/spec/layout"
	"github.com/drayage/dray/internal/spec/manifest"
)

// nodePlan is the plan of a chain on nodes on which it is the same.
type nodePlan struct {
	Nodes   []string   `json:"nodes"`
	Plan    *plan.Plan `json:"plan"`              // null: there is none, not even one that is infeasible
	Refusal string     `json:"refusal,omitempty"` // why the chain cannot be on these nodes
}

// clusterPlan is `kubectl dray plan --json`'s output.
type clusterPlan struct {
	Chain  string     `json:"chain"`
	Chosen []string   `json:"chosen"` // nodes that may have the chain's pods
	Detail string     `json:"detail"` // as in the chain's condition Planned
	Nodes  []nodePlan `json:"nodes"`
	// Placement is the nodes of the functions, if the chain asks for a placement.
	Placement []fleet.Spot `json:"placement,omitempty"`
	unplaced  bool         // a node can make its links, but no placement meets what they require
}

// planned is a chain to be planned, and what its pods do already.
type planned struct {
	chain  *chain.Chain
	wanted *manifest.Placement // nil: it asks for none
	object *cluster.Chain      // empty: it is not in the cluster
}

func (a *app) clusterPlanCommand(k *cluster.Kubectl) *cobra.Command {
	var file string
	cmd := &cobra.Command{
		Use:   "plan CHAIN | -f FILE",
		Short: "Show how a chain would be built on each node, and why; change nothing",
		Long: "Plan a chain on the inventory of each node, as dray-operator does, and show the plan of each; nodes with the\n" +
			"same plan are shown together. The chain is an object of the cluster, or in FILE: a chain file, or a manifest\n" +
			"with one Chain; - is standard input. --verbose also shows every rejected transport and every address.",
		Example: "  kubectl dray plan f1 -n f1-split\n  kubectl dray plan -f examples/native/echo.yaml\n  kubectl dray plan f1 --json",
		Args:    args(cobra.MaximumNArgs(1)),
		RunE: func(cmd *cobra.Command, argv []string) error {
			if (file == "") == (len(argv) == 0) {
				return usageError("name a chain of the cluster, or a file with -f; usage: %s", cmd.UseLine())
			}
			c, err := chainToPlan(cmd.Context(), k, argv, file)
			if err != nil {
				return err
			}
			nodes, err := k.Nodes(cmd.Context())
			if err != nil {
				return err
			}
			var machines []fleet.Machine
			if c.wanted != nil {
				if machines, err = k.Places(cmd.Context()); err != nil {
					return err
				}
			}
			return a.showClusterPlan(planOnNodes(c, nodes, machines))
		},
	}
	cmd.Flags().StringVarP(&file, "filename", "f", "", "chain file or manifest")
	return cmd
}

// chainToPlan reads a chain from the cluster or from a file.
func chainToPlan(ctx context.Context, k *cluster.Kubectl, argv []string, file string) (*planned, error) {
	if file == "" {
		c, err := k.Chain(ctx, argv[0])
		if err != nil {
			return nil, err
		}
		return parsed(c.Metadata.Name, c.Spec, c)
	}
	if file == "-" {
		file = standardInput
	}
	data, err := readFile(ctx, file)
	if err != nil {
		return nil, err
	}
	name, spec, err := manifest.Read(file, data)
	if err != nil {
		return nil, err
	}
	return parsed(name, spec, &cluster.Chain{})
}

func parsed(name string, spec []byte, object *cluster.Chain) (*planned, error) {
	c, err := manifest.Parse(name, spec)
	if err != nil {
		return nil, err
	}
	wanted, err := manifest.ParsePlacement(spec)
	return &planned{c, wanted, object}, err
}

// planOnNodes plans a chain on all nodes, and places its functions if it asks for that.
func planOnNodes(c *planned, nodes []fleet.Node, machines []fleet.Machine) clusterPlan {
	all := fleet.Plan(c.chain, nodes)
	choice := fleet.Choose(all)
	p := clusterPlan{Chain: c.chain.Name, Chosen: append([]string{}, choice.Nodes...), Detail: choice.String(), Nodes: []nodePlan{}}
	for _, n := range all {
		p.add(n)
	}
	switch {
	case choice.Plan == nil:
	case c.wanted == nil:
		p.Detail += orEmpty("; warning: ", strings.Join(choice.Across.Paths, "; "))
	default:
		p.place(c, fleet.Site{Chain: c.chain, Wanted: c.wanted, Choice: choice, Nodes: nodes, Machines: machines})
	}
	return p
}

// place adds the placement as dray-operator would decide it now.
func (p *clusterPlan) place(c *planned, on fleet.Site) {
	before := map[string]string{}
	if c.object.Seen() {
		for _, s := range c.object.Status.Placement {
			before[s.Function] = s.Node
		}
	}
	placed := on.Keep(on.Open(c.object.Running()), before)
	p.Placement = placed.Spots
	if placed.Note != "" {
		p.Detail += "; " + placed.Note
	}
	if placed.Refusal != "" {
		p.Chosen, p.Detail, p.unplaced = []string{}, placed.Refusal+orEmpty("; ", placed.Note), true
	}
}

// add adds the plan of a node to that of others, if it is the same.
func (p *clusterPlan) add(n fleet.Planned) {
	for i := range p.Nodes {
		if other := &p.Nodes[i]; other.Refusal == n.Refusal && reflect.DeepEqual(anywhere(other.Plan), anywhere(n.Plan)) {
			other.Nodes = append(other.Nodes, n.Node)
			return
		}
	}
	p.Nodes = append(p.Nodes, nodePlan{[]string{n.Node}, n.Plan, n.Refusal})
}

// anywhere is a plan without the name of its host.
func anywhere(p *plan.Plan) *plan.Plan {
	if p == nil {
		return nil
	}
	bare := *p
	bare.Host, bare.Functions = "", append([]plan.Function{}, p.Functions...)
	for i := range bare.Functions {
		bare.Functions[i].Host = ""
	}
	return &bare
}

// showClusterPlan prints the plans. A chain that no node can carry is an error with its
// exit code.
func (a *app) showClusterPlan(p clusterPlan) error {
	var err error
	if a.json {
		err = a.printJSON(schemaClusterPlan, p)
	} else {
		err = a.printText(func(w io.Writer, width int) error { return printClusterPlan(w, width, p, a.verbose) })
	}
	switch {
	case len(p.Chosen) > 0:
		return err
	case len(p.Nodes) == 0:
		return errors.Join(err, errors.New(p.Detail))
	}
	if p.unplaced {
		return errors.Join(&codeError{exitInfeasible, errors.New("infeasible: " + p.Detail)}, err)
	}
	return errors.Join(&codeError{exitInfeasible, fmt.Errorf("infeasible: no node can do what chain %s requires", p.Chain)}, err)
}

func printClusterPlan(w io.Writer, width int, p clusterPlan, verbose bool) error {
	for i, n := range p.Nodes {
		if i > 0 {
			fmt.Fprintln(w)
		}
		names := fleet.Names(n.Nodes)
		if n.Plan == nil {
			fmt.Fprintln(w, strings.Join(layout.Wrap(fmt.Sprintf("chain %s on %s: %s", p.Chain, names, n.Refusal), width), "\n"))
		} else {
			shown := *n.Plan
			shown.Host = names
			if err := shown.Text(w, width, verbose); err != nil {
				return err
			}
		}
	}
	if len(p.Chosen) == 0 {
		return nil
	}
	fmt.Fprintln(w, "\n"+strings.Join(layout.Wrap("The chain's pods may be "+p.Detail, width), "\n"))
	if len(p.Placement) == 0 {
		return nil
	}
	t := layout.Table{Head: []string{"FUNCTION", "NODE", "BECAUSE"}}
	for _, s := range p.Placement {
		t.Add(s.Function, s.Node, s.Reason)
	}
	fmt.Fprintln(w)
	return t.Write(w, width)
}
