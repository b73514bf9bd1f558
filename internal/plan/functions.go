// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/drayage/dray/internal/spec/chain"
	"github.com/drayage/dray/internal/spec/dpdk"
	"github.com/drayage/dray/internal/spec/inventory"
)

// placeFunctions puts every function on the one host of the inventory, or on the hosts of
// the chain that are chosen.
func (p *planner) placeFunctions() {
	cpus := p.assignCPUs()
	for i := range p.chain.Functions {
		f := &p.chain.Functions[i]
		p.checkRuntime(f)
		p.checkSCTP(f)
		p.warnOfHugePages(f)
		p.warnOfEAL(f)
		p.plan.Functions = append(p.plan.Functions, Function{
			Name:    f.Name,
			Runtime: f.Runtime,
			Host:    p.inv.Host.Hostname,
			On:      f.Host,
			CPUs:    cpus[f.Name],
			Compute: f.Compute,
			Reason:  p.placementReason(f, cpus[f.Name]),
		})
	}
	if p.explain {
		p.listAlternatives()
	}
}

func (p *planner) checkRuntime(f *chain.Function) {
	v := Violation{
		Subject:    "function " + f.Name,
		Constraint: "runtime " + string(f.Runtime),
		Pos:        at(f.FieldPos, "runtime", f.Pos),
		Hard:       true,
	}
	item := inventory.Find(p.inv.Runtimes, string(f.Runtime))
	if f.Runtime == chain.RuntimeVM {
		p.warn("function %s: expected figures are for functions on the host itself; a virtual machine reaches less", f.Name)
	}
	switch {
	case item == nil:
		v.Reason = "there is no such runtime"
		v.Fix = "use one of: " + joinNames(p.inv.Runtimes)
		p.violate(v)
	case !item.Usable():
		v.Reason, v.Fix = "it "+item.Unusable(), item.Fix
		p.violate(v)
	case item.Untried():
		p.warn("function %s: runtime %s was %s", f.Name, f.Runtime, item.Reason)
	case item.Status == inventory.NeverRun:
		p.warn("function %s: runtime %s has never been run on this host", f.Name, f.Runtime)
	}
}

// checkSCTP refuses packets of SCTP's own from a container: without the kernel's SCTP they
// need a capability, which no container of Drayage has.
func (p *planner) checkSCTP(f *chain.Function) {
	item := inventory.Find(p.inv.Protocols, inventory.ProtocolSCTP)
	if f.SCTP != chain.SCTPIP || !f.Runtime.Contained() || (item != nil && item.Status == inventory.OK) {
		return
	}
	p.violate(Violation{
		Subject:    "function " + f.Name,
		Constraint: "sctp ip",
		Pos:        at(f.FieldPos, "sctp", f.Pos),
		Hard:       true,
		Reason:     fmt.Sprintf("this host's kernel has no SCTP, and without it SCTP packets need CAP_NET_RAW, which runtime %s does not give", f.Runtime),
		Fix:        "write sctp: udp for this function and its peers, or runtime: process, or load the kernel's module (modprobe sctp)",
	})
}

// warnOfHugePages reports the system calls allowed beyond the default seccomp profile:
// EAL binds huge pages to NUMA nodes with them.
func (p *planner) warnOfHugePages(f *chain.Function) {
	if f.Runtime.Contained() && f.HasPort(chain.FaceDPDK) && len(f.HugePages) > 0 {
		p.warn("function %s: for DPDK's huge pages, its seccomp profile also allows mbind, set_mempolicy and get_mempolicy", f.Name)
	}
}

// nearEAL matches likely misspellings of dpdk.Argument.
var nearEAL = regexp.MustCompile(`(?i)^\$?[({]?\s*DRAY[_ -]?EAL\s*[)}]?$`)

// warnOfEAL finds DPDK applications that would not find their ports.
func (p *planner) warnOfEAL(f *chain.Function) {
	namesPorts := false
	for _, arg := range f.Command {
		if arg != dpdk.Argument && nearEAL.MatchString(arg) {
			p.warn("function %s: its command gets %q unchanged; did you mean %s?", f.Name, arg, dpdk.Argument)
			return
		}
		namesPorts = namesPorts || strings.Contains(arg, "DRAY_EAL")
	}
	if !namesPorts && len(f.Command) > 0 && f.HasPort(chain.FaceDPDK) {
		p.warn("function %s: a port has face: dpdk, but the command lacks the argument %s; a DPDK application needs it to find its port, unless it reads the variable DRAY_EAL", f.Name, dpdk.Argument)
	}
}

// checkEAL refuses a DPDK application that would end at its start, because its function
// has too little memory.
func (p *planner) checkEAL(f *chain.Function) {
	if !f.HasPort(chain.FaceDPDK) {
		return
	}
	app := dpdk.Application{Memory: f.Memory, HugePages: f.HugePages}
	if f.Runtime == chain.RuntimeVM {
		app.HugePages = []chain.HugePages{{Size: chain.VMPage, Limit: f.OwnPages()}}
	}
	if p.sharesEAL(f) {
		app.Vdevs = []dpdk.Vdev{{Driver: dpdk.NetMPRing}}
	}
	var little *dpdk.MemoryError
	if !errors.As(app.CheckMemory(f.Command), &little) {
		return
	}
	value := little.Needed.String()
	if little.Limit == "hugepages" {
		size := app.HugePages[0].Size
		value = fmt.Sprintf("{%v: %v}", size, (little.Needed-1)/size*size+size)
	}
	p.violate(Violation{
		Subject:    "function " + f.Name,
		Constraint: fmt.Sprintf("%s of %v", little.Limit, little.Has),
		Reason:     little.Why,
		Fix:        fmt.Sprintf("write %s: %s or more", little.Limit, value),
		Pos:        at(f.FieldPos, little.Limit, f.Pos),
		Hard:       true,
	})
}

// sharesEAL reports whether a function is the first end of a link whose other function uses its
// huge pages, too.
func (p *planner) sharesEAL(f *chain.Function) bool {
	return slices.ContainsFunc(p.plan.Links, func(l Link) bool {
		t := p.inv.Transport(l.Transport)
		return t != nil && t.Caps.HugePages && t.Caps.OneUser && l.Ends[0].Function == f.Name
	})
}

func (p *planner) placementReason(f *chain.Function, cpus []int) string {
	where := "the only host"
	if p.on != nil {
		where = p.on.reason(f)
	}
	switch {
	case p.chain.Hosts.Lined():
		return where + p.on.cpusText(f.Name)
	case f.Compute != nil && p.on == nil && cpus != nil:
		return fmt.Sprintf("%s; %s of %s", where, f.Compute.Percent(), cpusOf(cpus))
	case len(f.CPUs.Set) > 0:
		return where + "; CPUs named in the chain"
	case f.CPUs.Count == 0:
		return where + "; no CPUs requested"
	case cpus == nil:
		return where + "; too few CPUs"
	default:
		isolated := intersect(cpus, p.inv.Host.Isolated)
		return fmt.Sprintf("%s; %d of %d CPUs isolated", where, len(isolated), len(cpus))
	}
}
