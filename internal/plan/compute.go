// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/drayage/dray/internal/spec/chain"
	"github.com/drayage/dray/internal/spec/cpulist"
)

// crowded is the sum of the shares of a CPU above which too little is left for the
// kernel's own work, and a share may be missed by that.
const crowded = 0.95

// rounding is more than sums of shares are off, and less than any share.
const rounding = 1e-9

// sharing is the functions with compute that each CPU is given to.
type sharing map[int][]*chain.Function

// taken is the sum of the shares of a CPU.
func (s sharing) taken(cpu int) float64 {
	sum := 0.0
	for _, f := range s[cpu] {
		sum += float64(f.Compute.Share)
	}
	return sum
}

// takes reports whether a CPU of functions with compute can also be given to f. Only
// functions with one CPU share it: a control group has one weight for all its CPUs.
func (s sharing) takes(f *chain.Function, cpu int) bool {
	return s.open(f, cpu) && s.taken(cpu)+float64(f.Compute.Share) <= 1+rounding
}

// open is takes without looking at what is left of the CPU.
func (s sharing) open(f *chain.Function, cpu int) bool {
	one := func(f *chain.Function) bool { return f.Compute != nil && f.CPUs.Number() == 1 }
	return one(f) && len(s[cpu]) > 0 && one(s[cpu][0])
}

func (s sharing) add(f *chain.Function, cpus []int) {
	for _, cpu := range cpus {
		if f.Compute != nil {
			s[cpu] = append(s[cpu], f)
		}
	}
}

// text names the functions of a CPU with their shares.
func (s sharing) text(cpu int) string {
	var parts []string
	for _, f := range s[cpu] {
		parts = append(parts, f.Name+" "+f.Compute.Percent())
	}
	return strings.Join(parts, ", ")
}

// takeShare chooses a CPU for a function that has a share of one: the fullest that has
// room, or else a free one.
func (p *planner) takeShare(f *chain.Function, owner map[int]string) []int {
	shared := slices.SortedFunc(maps.Keys(p.shared), func(a, b int) int {
		return cmp.Or(cmp.Compare(p.shared.taken(b), p.shared.taken(a)), cmp.Compare(a, b))
	})
	for _, cpu := range shared {
		if p.shared.takes(f, cpu) {
			return []int{cpu}
		}
	}
	if free, _ := p.freeFor(f, owner); len(free) > 0 {
		owner[free[0]] = "function " + f.Name
		return []int{free[0]}
	}
	v := p.crowdedOut(f, shared)
	v.Hard = true // it cannot be pinned
	p.violate(v)
	return nil
}

// crowdedOut is the violation of a function whose share fits on none of some CPUs. The
// smallest change is to lower the share to what the emptiest has left.
func (p *planner) crowdedOut(f *chain.Function, cpus []int) Violation {
	v := Violation{
		Subject:    "function " + f.Name,
		Constraint: "compute share " + f.Compute.Percent(),
		Pos:        at(f.FieldPos, "compute", f.Pos),
		Reason:     "every CPU is pinned to a function or link that cannot share it",
		Fix:        "ask for fewer CPUs elsewhere; functions with compute and one CPU can share it",
	}
	open := slices.DeleteFunc(slices.Clone(cpus), func(cpu int) bool { return !p.shared.open(f, cpu) })
	if len(open) == 0 {
		return v
	}
	best := slices.MinFunc(open, func(a, b int) int { return cmp.Compare(p.shared.taken(a), p.shared.taken(b)) })
	left := 1 - p.shared.taken(best)
	v.Reason = fmt.Sprintf("CPU %d has %.4g%% left: %s", best, 100*max(0, left), p.shared.text(best))
	v.Fix = fmt.Sprintf("lower a share on CPU %d by %.4g%%", best, 100*(float64(f.Compute.Share)-left))
	return v
}

// checkShares is what the owner of a CPU that f names has against it; nil: nothing.
func (p *planner) checkShares(f *chain.Function, cpu int, free []int) *Violation {
	if p.shared.takes(f, cpu) {
		return nil
	}
	if p.shared.open(f, cpu) {
		v := p.crowdedOut(f, []int{cpu})
		v.Fix += ", or name another CPU; these are free: " + orNone(cpulist.Format(free))
		return &v
	}
	if f.Compute != nil && len(p.shared[cpu]) > 0 {
		return &Violation{
			Subject:    "function " + f.Name,
			Constraint: "cpus " + cpulist.Format(f.CPUs.Set),
			Pos:        at(f.FieldPos, "cpus", f.Pos),
			Reason:     fmt.Sprintf("CPU %d is also of %s, and only functions with one CPU can share it: the kernel has one weight for all CPUs of a function", cpu, p.shared[cpu][0].Name),
			Fix:        "name one CPU for each of them, or CPUs that no other function has; these are free: " + orNone(cpulist.Format(free)),
		}
	}
	return nil
}

// warnOfShares names the CPUs of which nearly all is granted.
func (p *planner) warnOfShares() {
	for _, cpu := range slices.Sorted(maps.Keys(p.shared)) {
		if sum := p.shared.taken(cpu); sum > crowded+rounding {
			who := fmt.Sprintf("its functions have %.4g%% of it together (%s)", 100*sum, p.shared.text(cpu))
			if all := p.shared[cpu]; len(all) == 1 {
				who = fmt.Sprintf("function %s has %s of it", all[0].Name, all[0].Compute.Percent())
			}
			p.warn("CPU %d: %s, and the kernel itself needs some: a share may be missed by that; %.4g%% is safe", cpu, who, 100*crowded)
		}
	}
}

// cpusOf names CPUs: "CPU 1", "CPUs 2-3".
func cpusOf(cpus []int) string {
	if len(cpus) == 1 {
		return fmt.Sprintf("CPU %d", cpus[0])
	}
	return "CPUs " + cpulist.Format(cpus)
}
