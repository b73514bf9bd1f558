// SPDX-License-Identifier: Apache-2.0

package report

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/drayage/dray/internal/result/record"
	"github.com/drayage/dray/internal/result/verdict"
)

// maxRaw and maxJSON are how much of a record the page shows, in bytes; the
// rest stands in records.jsonl.
const (
	maxRaw  = 4000
	maxJSON = 3000
)

type recordView struct {
	Anchor  string
	Number  int
	ID      string
	Title   string
	Result  string
	Warmup  bool
	Error   string
	Marks   []string
	Command string
	JSON    string
	Raw     string
}

func (d *Data) recordViews() []recordView {
	out := make([]recordView, 0, len(d.Trials))
	for i, t := range d.Trials {
		raw := t.Raw
		t.Raw = ""
		out = append(out, recordView{
			Anchor: fmt.Sprintf("rec-%d", i+1), Number: i + 1, ID: t.ID,
			Title:  fmt.Sprintf("%s by %s, %s → %s", quantityText(t.Quantity), t.Instrument.Name, t.From, t.To),
			Result: resultText(t), Warmup: t.Warmup, Error: t.Error, Marks: t.Marks,
			Command: strings.Join(t.Instrument.Client, " "),
			JSON:    cut(recordJSON(t), maxJSON), Raw: cut(raw, maxRaw),
		})
	}
	return out
}

// recordJSON is the record but for its raw output and environment, which the
// page shows elsewhere.
func recordJSON(t record.Trial) string {
	b, err := json.Marshal(t)
	if err != nil {
		return err.Error()
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(b, &fields); err != nil {
		return err.Error()
	}
	delete(fields, "environment")
	var s strings.Builder
	for _, k := range slices.Sorted(maps.Keys(fields)) {
		fmt.Fprintf(&s, "%s: %s\n", k, fields[k])
	}
	return s.String()
}

func resultText(t record.Trial) string {
	switch {
	case t.Throughput != nil:
		return verdict.FormatBitrate(float64(t.Throughput.BitsPerSecond))
	case t.Latency != nil:
		return fmt.Sprintf("%d round trips, %d lost, least %s", t.Latency.Sent-min(t.Latency.Sent, t.Latency.Lost), t.Latency.Lost, verdict.FormatDuration(float64(t.Latency.MinRTT)))
	case t.OneWay != nil && t.Delivery != nil:
		return fmt.Sprintf("%d received, %d lost, one way %s to %s", t.Delivery.Received, t.Delivery.Lost,
			verdict.FormatDuration(float64(t.OneWay.Min)), verdict.FormatDuration(float64(t.OneWay.Max)))
	case t.Delivery != nil:
		return fmt.Sprintf("%s, %d of %d lost", verdict.FormatPacketRate(float64(t.Delivery.PacketRate)), t.Delivery.Lost, t.Delivery.Sent)
	case t.Requests != nil:
		return fmt.Sprintf("%.0f requests/s", t.Requests.PerSecond)
	case t.PathMTU != nil && t.PathMTU.Passed:
		return fmt.Sprintf("%d B passed", t.PathMTU.Wanted)
	case t.PathMTU != nil:
		return fmt.Sprintf("%d B did not pass, %d B did", t.PathMTU.Wanted, t.PathMTU.Largest)
	}
	return "no result"
}

// cut shortens text, at a rune's border, and says so.
func cut(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	end := limit
	for end > 0 && !utf8.RuneStart(s[end]) {
		end--
	}
	return fmt.Sprintf("%s\n… %d more bytes stand in %s", s[:end], len(s)-end, RecordsFile)
}

// machine is the environment that the records agree on; where they differ,
// every value is named.
func (d *Data) machine() []fact {
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
		{"Real-time kernel", func(e record.Environment) string { return map[bool]string{true: "yes", false: "no"}[e.Realtime] }},
		{"Hugepages", func(e record.Environment) string { return pairs(e.HugePages) }},
		{"Pinning", func(e record.Environment) string { return pairs(e.Pinning) }},
		{"Offloads", func(e record.Environment) string { return pairs(e.Offloads) }},
		{"Qdiscs", func(e record.Environment) string { return pairs(e.Qdiscs) }},
		{"Engines", func(e record.Environment) string { return pairs(e.Engines) }},
		{"Kernel command line", func(e record.Environment) string { return e.CmdLine }},
	}
	var out []fact
	for _, f := range fields {
		var values []string
		for _, t := range d.Trials {
			if v := f.of(t.Env); v != "" && !slices.Contains(values, v) && len(values) < 4 {
				values = append(values, v)
			}
		}
		if len(values) > 0 {
			out = append(out, fact{f.name, strings.Join(values, " · ")})
		}
	}
	out = append(out, d.host()...)
	return append(out, d.loads()...)
}

// host is what the inventory knows beyond the records.
func (d *Data) host() []fact {
	if d.Inventory == nil {
		return nil
	}
	h := d.Inventory.Host
	var out []fact
	if h.MemoryTotal > 0 {
		out = append(out, fact{"Memory", fmt.Sprintf("%.1f GiB", float64(h.MemoryTotal)/(1<<30))})
	}
	if h.Cgroup != "" {
		out = append(out, fact{"Control groups", h.Cgroup})
	}
	if h.NUMANodes > 0 {
		out = append(out, fact{"NUMA nodes", fmt.Sprint(h.NUMANodes)})
	}
	return out
}

// loads is how busy the machine was over all trials.
func (d *Data) loads() []fact {
	if len(d.Trials) == 0 {
		return nil
	}
	low, high := d.Trials[0].Env, d.Trials[0].Env
	for _, t := range d.Trials {
		low.LoadBefore, high.LoadBefore = min(low.LoadBefore, t.Env.LoadBefore), max(high.LoadBefore, t.Env.LoadBefore)
		low.BusyDuring, high.BusyDuring = min(low.BusyDuring, t.Env.BusyDuring), max(high.BusyDuring, t.Env.BusyDuring)
		low.Stolen, high.Stolen = min(low.Stolen, t.Env.Stolen), max(high.Stolen, t.Env.Stolen)
	}
	return []fact{
		{"Load average before trials", fmt.Sprintf("%.2f to %.2f", low.LoadBefore, high.LoadBefore)},
		{"CPUs busy during trials", fmt.Sprintf("%.0f to %.0f %%", 100*low.BusyDuring, 100*high.BusyDuring)},
		{"CPU time stolen", fmt.Sprintf("%.1f to %.1f %%", 100*low.Stolen, 100*high.Stolen)},
	}
}

func pairs[V any](m map[string]V) string {
	var out []string
	for _, k := range slices.Sorted(maps.Keys(m)) {
		out = append(out, fmt.Sprintf("%s: %v", k, m[k]))
	}
	return strings.Join(out, "; ")
}
