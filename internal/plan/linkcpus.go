// SPDX-License-Identifier: Apache-2.0

package plan

import "strings"

// assignLinkCPUs gives each link with polling processes as many CPUs as they keep busy.
// It takes no CPU of a pinned function or of another such link. If too few are left,
// the processes may use any CPU. A running link keeps what it has.
func (p *planner) assignLinkCPUs() {
	owner := p.heldCPUs()
	for _, f := range p.plan.Functions {
		for _, cpu := range f.CPUs {
			owner[cpu] = f.Name
		}
	}
	var sharing []string
	for i := range p.plan.Links {
		l := &p.plan.Links[i]
		t := p.inv.Transport(l.Transport)
		if t == nil || t.Caps.BusyCPUs == 0 {
			continue
		}
		free, busy := p.freeCPUs(owner), t.Caps.BusyCPUs*max(1, len(l.Hosts))
		held, running := p.held.Links[l.Name]
		if len(held) > 0 {
			l.CPUs = held
			continue
		}
		if running || len(free) < busy {
			sharing = append(sharing, l.Name)
			continue
		}
		l.CPUs = free[:busy]
		for _, cpu := range l.CPUs {
			owner[cpu] = l.Name
		}
	}
	if len(sharing) > 0 {
		p.warn("no CPU is left for the polling process of link %s: functions and switches share CPUs, and every figure will suffer", strings.Join(sharing, ", "))
	}
}
