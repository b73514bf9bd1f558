// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/drayage/dray/internal/spec/chain"
	"github.com/drayage/dray/internal/spec/cpulist"
)

// assignCPUs assigns CPUs to every pinned function, by function name; unpinned
// functions are absent. Explicit sets come first, so that a count never takes a CPU
// that another function names. Running links keep theirs.
func (p *planner) assignCPUs() map[string][]int {
	if p.chain.Hosts.Lined() {
		return p.simulatedCPUs()
	}
	given := map[string][]int{}
	owner := p.heldCPUs()
	for i := range p.chain.Functions {
		if f := &p.chain.Functions[i]; len(f.CPUs.Set) > 0 {
			given[f.Name] = p.takeSet(f, owner)
		}
	}
	for _, f := range p.counted() {
		if cpus := p.takeCount(f, owner); cpus != nil {
			given[f.Name] = cpus
		}
	}
	p.warnOfShares()
	if len(owner) > 0 && len(p.freeCPUs(owner)) == 0 {
		p.warn("every CPU is pinned to a function; the host, switches and instruments must share those CPUs")
	}
	return given
}

// counted are the functions that ask for a number of CPUs: those with CPUs of their own,
// then those with a share, the largest first, since these find room less easily.
func (p *planner) counted() []*chain.Function {
	var all []*chain.Function
	for i := range p.chain.Functions {
		if f := &p.chain.Functions[i]; f.CPUs.Count > 0 {
			all = append(all, f)
		}
	}
	share := func(f *chain.Function) float64 {
		if p.sharesOne(f) {
			return float64(f.Compute.Share)
		}
		return 1
	}
	slices.SortStableFunc(all, func(a, b *chain.Function) int { return cmp.Compare(share(b), share(a)) })
	return all
}

// sharesOne reports whether a function may share its only CPU with others.
func (p *planner) sharesOne(f *chain.Function) bool {
	return f.Compute != nil && f.CPUs.Number() == 1 && p.on == nil
}

// heldCPUs is the owner of each CPU that a running link or function keeps.
func (p *planner) heldCPUs() map[int]string {
	owner := map[int]string{}
	for link, cpus := range p.held.Links {
		for _, cpu := range cpus {
			owner[cpu] = "link " + link
		}
	}
	for function, cpus := range p.held.Functions {
		for _, cpu := range cpus {
			owner[cpu] = "function " + function
		}
	}
	return owner
}

// takeSet assigns the function the CPUs it names.
func (p *planner) takeSet(f *chain.Function, owner map[int]string) []int {
	v := Violation{
		Subject:    "function " + f.Name,
		Constraint: "cpus " + cpulist.Format(f.CPUs.Set),
		Pos:        at(f.FieldPos, "cpus", f.Pos),
	}
	if offline := cpulist.Without(f.CPUs.Set, p.inv.Host.CPUs); len(offline) > 0 {
		v.Hard = true
		v.Reason = fmt.Sprintf("CPU %s is not available: offline, not allowed for dray, or used by another chain", cpulist.Format(offline))
		v.Fix = "choose from: " + orNone(cpulist.Format(p.inv.Host.CPUs))
		p.violate(v)
	}
	for _, cpu := range f.CPUs.Set {
		other, taken := owner[cpu]
		if taken && p.shared.takes(f, cpu) {
			continue
		}
		if against := p.checkShares(f, cpu, p.freeCPUs(owner)); taken && against != nil {
			p.violate(*against)
			break
		}
		if taken {
			v.Hard = false
			v.Reason = fmt.Sprintf("CPU %d is already pinned to %s", cpu, other)
			v.Fix = "give each function its own CPUs; these are free: " + orNone(cpulist.Format(p.freeCPUs(owner)))
			p.violate(v)
			break
		}
	}
	for _, cpu := range f.CPUs.Set {
		if _, taken := owner[cpu]; !taken {
			owner[cpu] = "function " + f.Name
		}
	}
	if p.on == nil {
		p.shared.add(f, f.CPUs.Set)
	}
	return slices.Clone(f.CPUs.Set)
}

// takeCount chooses CPUs for a function that asks for a number; nil if there are too
// few.
func (p *planner) takeCount(f *chain.Function, owner map[int]string) []int {
	if p.sharesOne(f) {
		cpus := p.takeShare(f, owner)
		p.shared.add(f, cpus)
		return cpus
	}
	free, of := p.freeFor(f, owner)
	if len(free) < f.CPUs.Count {
		p.violate(Violation{
			Subject:    "function " + f.Name,
			Constraint: fmt.Sprintf("cpus %d", f.CPUs.Count),
			Reason:     fmt.Sprintf("needs %d, but %s", f.CPUs.Count, freeText(len(free), of)),
			Fix:        "ask for fewer CPUs, or leave out cpus to let the function use any",
			Pos:        at(f.FieldPos, "cpus", f.Pos),
			Hard:       true,
		})
		return nil
	}
	cpus := slices.Clone(free[:f.CPUs.Count])
	for _, cpu := range cpus {
		owner[cpu] = "function " + f.Name
	}
	slices.Sort(cpus)
	return cpus
}

func freeText(free, of int) string {
	switch {
	case of == 0:
		return "other chains have all of the host's CPUs"
	case free == 0:
		return fmt.Sprintf("none of the host's %d CPUs is free", of)
	case free == 1:
		return fmt.Sprintf("only 1 of the host's %d CPUs is free", of)
	}
	return fmt.Sprintf("only %d of the host's %d CPUs are free", free, of)
}

// freeFor are the free CPUs that the function may have, and how many there are in all: of
// a simulated host that names its CPUs, only those.
func (p *planner) freeFor(f *chain.Function, owner map[int]string) (free []int, of int) {
	free, of = p.freeCPUs(owner), len(p.inv.Host.CPUs)
	if p.on == nil {
		return free, of
	}
	if own := p.on.named(f.Name); own != nil {
		return intersect(free, own), len(own)
	}
	return free, of
}

// freeCPUs lists the unassigned CPUs in the order in which counts take them: isolated
// CPUs first, the host's first CPU last. Interrupts and housekeeping run on the first
// CPU unless someone moved them.
func (p *planner) freeCPUs(owner map[int]string) []int {
	var free []int
	for _, cpu := range p.inv.Host.CPUs {
		if _, taken := owner[cpu]; !taken {
			free = append(free, cpu)
		}
	}
	class := func(cpu int) int {
		switch {
		case slices.Contains(p.inv.Host.Isolated, cpu):
			return 0
		case cpu == p.inv.Host.CPUs[0]:
			return 2
		}
		return 1
	}
	slices.SortStableFunc(free, func(a, b int) int { return class(a) - class(b) })
	return free
}

func intersect(a, b []int) []int { return cpulist.Without(a, cpulist.Without(a, b)) }

func orNone(s string) string {
	if s == "" {
		return "none"
	}
	return s
}
