// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"fmt"
	"maps"
	"strings"

	"github.com/drayage/dray/internal/host"
	"github.com/drayage/dray/internal/link/transport"
	"github.com/drayage/dray/internal/node"
	"github.com/drayage/dray/internal/plan"
	"github.com/drayage/dray/internal/result/record"
	"github.com/drayage/dray/internal/spec/inventory"
)

// Environment describes the machine's current state, the programs that affect the
// figures and, unless live is nil, a chain's interfaces and CPUs. version is this
// program's.
func Environment(inv *inventory.Inventory, live *node.Live, version string) record.Environment {
	now, err := host.Describe()
	if err != nil {
		now = inv.Host
	}
	env := OfHost(now)
	env.OtherRuns = host.OtherMeasurements()
	env.Dray, env.Engines = version, programs(inv, live)
	env.Offloads, env.Qdiscs = map[string]string{}, map[string]string{}
	if live == nil {
		return env
	}
	env.Pinning = pinning(live.State.Plan)
	for _, l := range live.State.Plan.Links {
		maps.Copy(env.Qdiscs, switchQdiscs(l, live.State.Reports[l.Name]))
		maps.Copy(env.Qdiscs, UserQdiscs(l))
		for _, e := range l.Ends {
			if e.Uplink != "" || live.State.Sandboxes[e.Function] == nil {
				continue
			}
			ns := live.State.Sandboxes[e.Function].Netns
			env.Offloads[e.String()] = textOr(ns.Offloads(e.Port))
			if _, user := env.Qdiscs[e.String()]; !user {
				qdisc, err := ns.ReadQdisc(e.Port)
				env.Qdiscs[e.String()] = textOr(strings.TrimSpace(qdisc.Kind+" "+qdisc.Text), err)
			}
		}
	}
	return env
}

// pinning is the CPUs of the functions that have dedicated ones.
func pinning(p *plan.Plan) map[string][]int {
	cpus := map[string][]int{}
	for _, f := range p.Functions {
		if len(f.CPUs) > 0 {
			cpus[f.Name] = f.CPUs
		}
	}
	return cpus
}

// OfHost is the part that describes a machine.
func OfHost(h inventory.Host) record.Environment {
	env := record.Environment{
		Kernel: h.Kernel, CmdLine: h.CmdLine, OS: h.OS, CPUModel: h.CPUModel,
		CPUs: h.CPUs, Isolated: h.Isolated, Governor: h.Governor, Virtual: h.Virtual, Realtime: h.Realtime,
		HugePages: map[string]int{}, LoadBefore: h.Load1,
	}
	for _, pages := range h.HugePages {
		env.HugePages[pageSize(pages.Size)] = pages.Total
	}
	return env
}

func pageSize(size uint64) string {
	if size >= 1<<30 {
		return fmt.Sprintf("%dGi", size>>30)
	}
	if size >= 1<<20 {
		return fmt.Sprintf("%dMi", size>>20)
	}
	return fmt.Sprintf("%dKi", size>>10)
}

// switchQdiscs are the qdiscs that the link's switch set at its end of the ports,
// as read back when the link was made.
func switchQdiscs(l plan.Link, r *transport.Report) map[string]string {
	if !l.Shape.AtSwitch() || r == nil {
		return nil
	}
	qdiscs := map[string]string{}
	for _, q := range r.Qdiscs {
		if !strings.HasSuffix(q.End, transport.AtSwitch) { // the port itself is read
			continue
		}
		qdiscs[l.Name+": "+q.End] = q.Kind + " " + q.Text
	}
	return qdiscs
}

func textOr(s string, err error) string {
	if err != nil {
		return "unknown: " + err.Error()
	}
	return s
}

// programs are the versions of every program that affects the figures.
func programs(inv *inventory.Inventory, live *node.Live) map[string]string {
	versions := map[string]string{}
	for _, items := range [][]inventory.Item{inv.Instruments, inv.Runtimes} {
		for _, item := range items {
			if item.Version != "" {
				versions[item.Name] = item.Version
			}
		}
	}
	if live == nil {
		return versions
	}
	for link, r := range live.State.Reports {
		if r != nil && r.Engine != "" {
			versions["link "+link] = r.Engine
		}
	}
	return versions
}
