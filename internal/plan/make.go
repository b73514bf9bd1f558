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
	held  Held // CPUs that stay as they are
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
func Make(c *chain.Chain, inv *inventory.Inventory) (*Plan, error) { return Remake(c, inv, Held{}) }

// Held is the CPUs that the running parts of a chain keep, by name. Nothing else gets
// them. A part without CPUs gets none.
type Held struct {
	Links     map[string][]int // on which the links poll
	Functions map[string][]int // on hosts with lines; other functions name theirs
}

// Remake plans a chain that is up and changes.
func Remake(c *chain.Chain, inv *inventory.Inventory, held Held) (*Plan, error) {
	return newPlanner(c, inv, held).make()
}

// Explain is Remake, and lists for each function the hosts that it is not on, and why.
func Explain(c *chain.Chain, inv *inventory.Inventory, held Held) (*Plan, error) {
	p := newPlanner(c, inv, held)
	p.explain = true
	return p.make()
}

func newPlanner(c *chain.Chain, inv *inventory.Inventory, held Held) *planner {
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
	p.here(p.checkMemory)
	for i := range p.chain.Links {
		p.planLink(&p.chain.Links[i])
	}
	for i := range p.chain.Functions {
		p.checkEAL(&p.chain.Functions[i])
	}
	p.here(p.checkHugePages)
	p.assignLinkCPUs()
	p.assignIPs()
	p.assignMACs()
	p.checkStations()
	for i := range p.chain.Paths {
		p.planPath(&p.chain.Paths[i]) // which compares addresses
	}
	p.warnOfPaths()
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

// here checks this machine. What it lacks for hosts with lines is no obstacle to their
// plan: only to simulating them.
func (p *planner) here(check func()) {
	before := len(p.plan.Violations)
	check()
	if p.chain.Hosts.Lined() {
		p.plan.Unsimulated = append(p.plan.Unsimulated, p.plan.Violations[before:]...)
		p.plan.Violations = p.plan.Violations[:before]
	}
}

func (p *planner) violate(v Violation) {
	v.Position = v.Pos.String()
	p.plan.Violations = append(p.plan.Violations, v)
}

func (p *planner) warn(format string, args ...any) {
	p.plan.Warnings = append(p.plan.Warnings, fmt.Sprintf(format, args...))
}
