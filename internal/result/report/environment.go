// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/drayage/dray/internal/result/record"
	"github.com/drayage/dray/internal/result/report/document"
	"github.com/drayage/dray/internal/spec/inventory"
)

// environmentSection describes the machine of the run's measurements. How busy nodes are is
// not known.
func (d *Data) environmentSection() document.Section {
	if d.Run.Cluster != nil {
		return environmentOf(machineFacts(d.Trials))
	}
	return environmentSection(d.Trials, d.Inventory)
}

// environmentSection describes the machine of measurements.
func environmentSection(trials []record.Trial, inv *inventory.Inventory) document.Section {
	return environmentOf(slices.Concat(machineFacts(trials), hostFacts(inv), loadFacts(trials)))
}

func environmentOf(facts []document.Fact) document.Section {
	return document.Section{ID: "machine", Title: "Environment", On: document.Page, Blocks: []document.Block{{List: facts}}}
}

// machineFacts are the facts on which the records agree; if they differ, every value is
// listed.
func machineFacts(trials []record.Trial) []document.Fact {
	fields := []struct {
		name string
		of   func(e record.Environment) string
	}{
		{"Kernel", func(e record.Environment) string { return e.Kernel }},
		{"OS", func(e record.Environment) string { return e.OS }},
		{"CPU", func(e record.Environment) string { return e.CPUModel }},
		{"CPUs", func(e record.Environment) string { return cpusText(e.CPUs) }},
		{"Isolated", func(e record.Environment) string {
			if len(e.Isolated) == 0 {
				return "none"
			}
			return cpusText(e.Isolated)
		}},
		{"Governor", func(e record.Environment) string { return e.Governor }},
		{"Hypervisor", func(e record.Environment) string {
			if e.Virtual == "" {
				return "none"
			}
			return e.Virtual
		}},
		{"Real-time kernel", func(e record.Environment) string { return yesNo(e.Realtime) }},
		{"Hugepages", func(e record.Environment) string { return pairs(e.HugePages) }},
		{"Pinning", func(e record.Environment) string { return pairs(e.Pinning) }},
		{"Offloads", func(e record.Environment) string { return pairs(e.Offloads) }},
		{"Qdiscs", func(e record.Environment) string { return pairs(e.Qdiscs) }},
		{"Engines", func(e record.Environment) string { return pairs(e.Engines) }},
		{"Kernel command line", func(e record.Environment) string { return e.CmdLine }},
	}
	var out []document.Fact
	for _, f := range fields {
		var values []string
		for _, t := range trials {
			if v := f.of(t.Env); v != "" && !slices.Contains(values, v) && len(values) < 4 {
				values = append(values, v)
			}
		}
		if len(values) > 0 {
			out = append(out, document.Fact{Name: f.name, Text: strings.Join(values, " · ")})
		}
	}
	return out
}

// hostFacts are the inventory's facts that the records lack.
func hostFacts(inv *inventory.Inventory) []document.Fact {
	if inv == nil {
		return nil
	}
	h := inv.Host
	var out []document.Fact
	if h.MemoryTotal > 0 {
		out = append(out, document.Fact{Name: "Memory", Text: fmt.Sprintf("%.1f GiB", float64(h.MemoryTotal)/(1<<30))})
	}
	if h.Cgroup != "" {
		out = append(out, document.Fact{Name: "Control groups", Text: h.Cgroup})
	}
	if h.NUMANodes > 0 {
		out = append(out, document.Fact{Name: "NUMA nodes", Text: fmt.Sprint(h.NUMANodes)})
	}
	return out
}

// loadFacts describe how busy the machine was over all trials.
func loadFacts(trials []record.Trial) []document.Fact {
	if len(trials) == 0 {
		return nil
	}
	low, high := trials[0].Env, trials[0].Env
	for _, t := range trials {
		low.LoadBefore, high.LoadBefore = min(low.LoadBefore, t.Env.LoadBefore), max(high.LoadBefore, t.Env.LoadBefore)
		low.BusyDuring, high.BusyDuring = min(low.BusyDuring, t.Env.BusyDuring), max(high.BusyDuring, t.Env.BusyDuring)
		low.Stolen, high.Stolen = min(low.Stolen, t.Env.Stolen), max(high.Stolen, t.Env.Stolen)
	}
	return []document.Fact{
		{Name: "Load average before trials", Text: fmt.Sprintf("%.2f to %.2f", low.LoadBefore, high.LoadBefore)},
		{Name: "CPUs busy during trials", Text: fmt.Sprintf("%.0f to %.0f %%", 100*low.BusyDuring, 100*high.BusyDuring)},
		{Name: "CPU time stolen", Text: fmt.Sprintf("%.1f to %.1f %%", 100*low.Stolen, 100*high.Stolen)},
	}
}

// unread is the prefix of a setting that could not be read. The error after it stays in
// the record.
const unread = "unknown: "

func pairs[V any](m map[string]V) string {
	var out []string
	for _, k := range slices.Sorted(maps.Keys(m)) {
		text := fmt.Sprint(m[k])
		if strings.HasPrefix(text, unread) {
			text = "unknown"
		}
		out = append(out, k+": "+text)
	}
	return strings.Join(out, "; ")
}
