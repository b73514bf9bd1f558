// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"slices"

	"github.com/drayage/dray/internal/plan/place"
	"github.com/drayage/dray/internal/spec/chain"
)

// FirstLines is the line that packets from one host to another take first, by both hosts:
// an index in h.Lines, or -1 if no lines lead there, or to the host itself. Each host in
// between sends them on by its own: together they are the route that was planned.
func FirstLines(h *chain.Hosts) [][]int {
	model := place.Model{Hosts: len(h.Names), Lines: lines(h)}
	first := make([][]int, len(h.Names))
	for from, routes := range model.Routes() {
		for _, r := range routes {
			line := -1
			if len(r.Lines) > 0 {
				line = r.Lines[0]
			}
			first[from] = append(first[from], line)
		}
	}
	return first
}

// simulatedCPUs gives functions on hosts with lines CPUs of this machine, as many as on
// their hosts. If there are too few for all, none gets any: they share the machine.
func (p *planner) simulatedCPUs() map[string][]int {
	given, owner := map[string][]int{}, p.heldCPUs()
	var asking []*chain.Function
	wanted := 0
	for i := range p.chain.Functions {
		f := &p.chain.Functions[i]
		if cpus, up := p.held.Functions[f.Name]; up {
			if len(cpus) > 0 {
				given[f.Name] = cpus
			}
		} else if f.CPUs.Number() > 0 {
			asking = append(asking, f)
			wanted += f.CPUs.Number()
		}
	}
	free := p.freeCPUs(owner)
	if wanted > len(free) {
		p.shareMachine(asking, wanted, len(free))
		return given
	}
	for _, f := range asking {
		cpus := slices.Clone(free[:f.CPUs.Number()])
		free = free[len(cpus):]
		slices.Sort(cpus)
		given[f.Name] = cpus
	}
	return given
}

// shareMachine says that functions have no CPUs of their own. A share of a CPU needs one.
func (p *planner) shareMachine(asking []*chain.Function, wanted, free int) {
	p.warn("functions ask for %s of their hosts, and %s of this machine can be given: simulated, they share all CPUs of this machine",
		cpusText(wanted), cpusText(free))
	for _, f := range asking {
		if f.Compute == nil {
			continue
		}
		v := Violation{
			Subject:    "function " + f.Name,
			Constraint: "compute " + f.Compute.Percent(),
			Reason:     "a share of a CPU needs CPUs of this machine, which has too few for all functions",
			Fix:        "ask for fewer CPUs, or simulate the hosts on a larger machine",
			Pos:        at(f.FieldPos, "compute", f.Pos),
			Hard:       true,
		}
		p.here(func() { p.violate(v) })
	}
}
