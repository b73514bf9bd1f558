// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"slices"

	"github.com/drayage/dray/internal/spec/chain"
	"github.com/drayage/dray/internal/spec/inventory"
)

// planner is the state of one call of Make.
type planner struct {
	chain *chain.Chain
	inv   *inventory.Inventory
	plan  *Plan
	held  map[string][]int // CPUs that running links keep
	// shared is how CPUs are given to functions with compute. On hosts with resources
	// such functions have whole CPUs, and it is empty.
	shared sharing
	// on is where the functions of hosts with resources are; nil: there are none.
	on      *placing
	explain bool // list the alternatives
}

// Make decides placement, CPUs, addresses and the transport of every link. The chain
// must be validated. The result depends only on the two arguments. If the chain cannot
// be satisfied, the error is an *Infeasible and the plan is as complete as possible.
// Under chain.Warn only a Hard violation is an error; the others become warnings in the
// plan.
func Make(c *chain.Chain, inv *inventory.Inventory) (*Plan, error) { return Remake(c, inv, nil) }

// Remake plans a chain that is up and changes. held is the CPUs on which its running
// links poll, by link: each keeps them, and nothing else gets them. A held link without
// CPUs gets none.
func Remake(c *chain.Chain, inv *inventory.Inventory, held map[string][]int) (*Plan, error) {
	return newPlanner(c, inv, held).make()
}

// Explain is Remake, and lists for each function the hosts that it is not on, and why.
func Explain(c *chain.Chain, inv *inventory.Inventory, held map[string][]int) (*Plan, error) {
	p := newPlanner(c, inv, held)
	p.explain = true
	return p.make()
}

func newPlanner(c *chain.Chain, inv *inventory.Inventory, held map[string][]int) *planner {
	return &planner{chain: c, inv: inv, held: held, shared: sharing{}, plan: &Plan{
		Chain:      c.Name,
		Host:       inv.Host.Hostname,
		Functions:  []Function{},
		Links:      []Link{},
		Violations: []Violation{},
		Warnings:   []string{},
	}}
}

func (p *planner) make() (*Plan, error) {
	if p.inv.CalibrationFault != "" {
		p.warn("the calibration of this host is not used, so stated defaults are: %s", p.inv.CalibrationFault)
	}
	p.planHosts()
	p.chooseHosts()
	p.placeFunctions()
	here := !p.chain.Hosts.Lined() // else they are other machines
	if here {
		p.checkMemory()
	}
	for i := range p.chain.Links {
		p.planLink(&p.chain.Links[i])
	}
	for i := range p.chain.Paths {
		p.planPath(&p.chain.Paths[i])
	}
	if here {
		p.checkHugePages()
		p.assignLinkCPUs()
	}
	p.assignIPs()
	p.assignMACs()
	return p.result()
}

func (p *planner) result() (*Plan, error) {
	violations := p.plan.Violations
	hard := slices.ContainsFunc(violations, func(v Violation) bool { return v.Hard })
	if len(violations) > 0 && (hard || p.chain.Policy.OnInfeasible != chain.Warn) {
		return p.plan, &Infeasible{Plan: p.plan}
	}
	for _, v := range violations {
		p.warn("%s", v)
	}
	return p.plan, nil
}

func (p *planner) violate(v Violation) {
	v.Position = v.Pos.String()
	p.plan.Violations = append(p.plan.Violations, v)
}

func (p *planner) warn(format string, args ...any) {
	p.plan.Warnings = append(p.plan.Warnings, fmt.Sprintf(format, args...))
}
