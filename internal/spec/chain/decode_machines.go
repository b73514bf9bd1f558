// SPDX-License-Identifier: Apache-2.0

package chain

import (
	"fmt"
	"slices"

	"github.com/drayage/dray/internal/spec/cpulist"
	"github.com/drayage/dray/internal/spec/parse"
	"github.com/drayage/dray/internal/spec/schema"
	"github.com/drayage/dray/internal/spec/units"
	"go.yaml.in/yaml/v3"
)

// machine is a Machine as written: with NUMA nodes, or as one.
type machine struct {
	name string
	one  NUMANode
	numa []NUMANode
}

var machineFields = []parse.Field[machine]{
	parse.NameField("name", "a host's name", "The name of the host.", func(m *machine) *string { return &m.name }).As(schema.Ref("name")).Must(),
	parse.ReadField("cpus", "The host's CPUs for functions: how many, or a list such as \"2-7\". Without lines, a list names CPUs of the machine that simulates the hosts; with lines, it names the host's own.",
		cpusForm(), decodeCpus, func(m *machine) *CPURequest { return &m.one.CPUs }),
	parse.ReadField("memory", "The host's memory for functions. Default: as much as they ask for.",
		schema.Ref("size"), DecodeMemory, func(m *machine) *units.Bytes { return &m.one.Memory }),
	parse.ReadField("numa", "The host's NUMA nodes, in place of cpus and memory. The CPUs and memory of a function are always of one node.",
		schema.List(schema.Ref("numa"), 1, 64), decodeNUMA, func(m *machine) *[]NUMANode { return &m.numa }),
}

var numaFields = []parse.Field[NUMANode]{
	parse.ReadField("cpus", "The node's CPUs for functions: how many, or a list.",
		cpusForm(), decodeCpus, func(n *NUMANode) *CPURequest { return &n.CPUs }).Must(),
	parse.ReadField("memory", "The node's memory for functions. Default: as much as they ask for.",
		schema.Ref("size"), DecodeMemory, func(n *NUMANode) *units.Bytes { return &n.Memory }),
}

var lineFields = append([]parse.Field[HostLine]{
	{Name: "between", Required: true, Doc: "The two hosts.", Form: schema.Set(schema.Ref("name"), 2, 2), Decode: decodeBetween},
}, LineFigures...)

// LineFigures are the fields of a line but for what it joins.
var LineFigures = []parse.Field[HostLine]{
	parse.ValueField("rate", "The rate of the line in each direction, in Ethernet frames without checksum, preamble and gap. Default: no limit.",
		schema.Ref("bitrate"), DecodeShapedRate, func(l *HostLine) *units.Bitrate { return &l.Rate }),
	parse.ReadField("delay", "The one-way delay of the line, without that of its length: whole microseconds, at most 1s.",
		schema.Ref("duration"), DecodeDelay, func(l *HostLine) *units.Duration { return &l.Delay }),
	parse.PositiveField("length", "The length of the line's optical fibre. A kilometre adds 5 µs of delay.",
		schema.Ref("length"), parseFibre, func(l *HostLine) *units.Length { return &l.Length }),
}

// longestFibre is half way around the Earth.
const longestFibre units.Length = 20_000_000

func parseFibre(s string) (units.Length, error) {
	v, err := units.ParseLength(s)
	if err == nil && v > longestFibre {
		return 0, &parse.Error{Text: fmt.Sprintf("a line cannot be %v long", v), Fix: "write at most " + longestFibre.String()}
	}
	return v, err
}

func cpusForm() schema.Schema {
	return schema.OneOf(schema.Integer(1, maxCPU+1), schema.Pattern(`^[0-9]{1,5}(-[0-9]{1,5})?(,[0-9]{1,5}(-[0-9]{1,5})?)*$`))
}

func decodeMachines(d *parse.Decoder, n *yaml.Node, h *Hosts) {
	seen := parse.NewUnique("hosts")
	h.Machines = []Machine{}
	d.List(n, "machines", func(item *yaml.Node) {
		var m machine
		values := parse.Object(d, item, "a machine", machineFields, &m)
		if values == nil {
			return
		}
		seen.Add(d, m.name, values["name"])
		checkMachine(d, item, values)
		nodes := m.numa
		if values["numa"] == nil {
			nodes = []NUMANode{m.one}
		}
		h.Names = append(h.Names, m.name)
		h.Machines = append(h.Machines, Machine{Name: m.name, NUMA: nodes, Pos: d.Position(item)})
	})
	if count := len(h.Machines); parse.Deref(n).Kind == yaml.SequenceNode && (count < 2 || count > MaxMachines) {
		d.Fail(parse.Deref(n), fmt.Sprintf("describe 2 to %d, or leave hosts out", MaxMachines), "a chain cannot have %d hosts", count)
	}
}

func checkMachine(d *parse.Decoder, item *yaml.Node, values map[string]*yaml.Node) {
	switch {
	case values["numa"] == nil && values["cpus"] == nil:
		d.Fail(item, `add one, such as "cpus: 8"`, "the machine has neither cpus nor numa")
	case values["numa"] != nil && values["cpus"] != nil:
		d.Fail(values["cpus"], "write cpus in each node of numa", "a machine with numa has no cpus of its own")
	case values["numa"] != nil && values["memory"] != nil:
		d.Fail(values["memory"], "write memory in each node of numa", "a machine with numa has no memory of its own")
	}
}

func decodeNUMA(d *parse.Decoder, n *yaml.Node) []NUMANode {
	var nodes []NUMANode
	d.List(n, "numa", func(item *yaml.Node) {
		var node NUMANode
		parse.Object(d, item, "a NUMA node", numaFields, &node)
		if len(nodes) > 0 && (len(node.CPUs.Set) > 0) != (len(nodes[0].CPUs.Set) > 0) {
			d.Fail(item, "write a number in each, or a list in each", "some nodes of the machine name their CPUs, and others count them")
		}
		nodes = append(nodes, node)
	})
	if parse.Deref(n).Kind == yaml.SequenceNode && len(parse.Deref(n).Content) == 0 {
		d.Fail(parse.Deref(n), "describe one, or write cpus", "the machine has no NUMA nodes")
	}
	return nodes
}

func decodeLines(d *parse.Decoder, n *yaml.Node, h *Hosts) {
	d.List(n, "lines", func(item *yaml.Node) {
		l := HostLine{Pos: d.Position(item)}
		parse.Object(d, item, "a line", lineFields, &l)
		h.Lines = append(h.Lines, l)
	})
	if parse.Deref(n).Kind == yaml.SequenceNode && len(h.Lines) == 0 {
		d.Fail(parse.Deref(n), "describe one, or leave lines out: then the underlay joins all hosts", "the hosts have no lines")
	}
}

func decodeBetween(d *parse.Decoder, n *yaml.Node, l *HostLine) {
	d.List(n, "between", func(item *yaml.Node) { l.Between = append(l.Between, d.Name(item, "a host's name")) })
	if parse.Deref(n).Kind != yaml.SequenceNode {
		return
	}
	if len(l.Between) != 2 || l.Between[0] == l.Between[1] {
		d.Fail(parse.Deref(n), "name two hosts", "a line joins two different hosts")
	}
}

// checkMachines compares the parts of hosts with each other.
func (k *checker) checkMachines(h *Hosts) {
	if h == nil || h.FieldPos == nil {
		return
	}
	at := func(field string) parse.Position { return h.FieldPos[field] }
	_, named := h.FieldPos["names"]
	_, lined := h.FieldPos["lines"]
	switch {
	case h.Machines != nil && named:
		k.FailAt(at("names"), "remove it", "machines already name the hosts")
	case h.Machines == nil && !named:
		k.FailAt(h.Pos, "add one of the two", `hosts needs the field "names" or "machines"`)
	case h.Machines == nil && lined:
		k.FailAt(at("lines"), "describe the hosts by machines in place of names, or use the underlay", "lines join hosts with machines only")
	case lined && (h.Underlay.Rate > 0 || h.Underlay.Delay > 0):
		k.FailAt(at("underlay"), "leave out the underlay's rate and delay", "each line has a rate and delay of its own")
	case !lined && len(h.Machines) > MaxHosts:
		k.FailAt(at("machines"), "state the lines between them: then they are only planned", "one machine cannot simulate %d hosts, but at most %d", len(h.Machines), MaxHosts)
	}
	k.checkLines(h)
	k.checkHostCPUs(h)
}

func (k *checker) checkLines(h *Hosts) {
	seen := map[[2]string]bool{}
	for _, l := range h.Lines {
		if len(l.Between) != 2 {
			continue // reported by the decoder
		}
		for _, name := range l.Between {
			if name != "" && h.Machines != nil && !slices.Contains(h.Names, name) {
				k.FailAt(l.Pos, knownHost(name, h.Names), "there is no host %s", parse.Quote(name))
			}
		}
		pair := [2]string{min(l.Between[0], l.Between[1]), max(l.Between[0], l.Between[1])}
		if seen[pair] {
			k.FailAt(l.Pos, "describe the faster one", "two lines join %s and %s", parse.Quote(pair[0]), parse.Quote(pair[1]))
		}
		seen[pair] = true
	}
}

// checkHostCPUs finds a CPU in two NUMA nodes. Hosts that are simulated share one
// machine's.
func (k *checker) checkHostCPUs(h *Hosts) {
	var all []int
	for _, m := range h.Machines {
		if len(h.Lines) > 0 {
			all = nil
		}
		for _, node := range m.NUMA {
			if twice := cpulist.Without(node.CPUs.Set, cpulist.Without(node.CPUs.Set, all)); len(twice) > 0 {
				k.FailAt(m.Pos, "give each CPU to one node of one host", "CPU %d of the host %s is in another node too", twice[0], parse.Quote(m.Name))
			}
			all = append(all, node.CPUs.Set...)
		}
	}
}

func knownHost(name string, names []string) string {
	if near := parse.Similar(name, names); near != "" {
		return fmt.Sprintf("did you mean %q?", near)
	}
	return "write " + parse.Either(names)
}

// checkSplits fills in what splits ask of links, and finds what contradicts that.
func (k *checker) checkSplits(c *Chain) {
	for i := range c.Links {
		l := &c.Links[i]
		split := c.SplitOf(l)
		l.Requires.Require(split)
		r := &l.Requires
		if at, stated := r.Pos["percentile"]; stated && r.Latency == 0 && r.PDV == 0 {
			k.FailAt(at, "add latency or packet_delay_variation, or remove it", "percentile has nothing to apply to")
		}
		if split != "" && r.MaxBitrate > 0 && r.MaxBitrate < r.MinBitrate && r.stated("min_bitrate") == 0 {
			k.FailAt(r.Pos["max_bitrate"], "raise it, or state a min_bitrate", "max_bitrate %v is below the %v of split %s", r.MaxBitrate, r.MinBitrate, split)
		}
	}
}
