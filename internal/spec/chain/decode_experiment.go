// SPDX-License-Identifier: Apache-2.0

package chain

import (
	"math"
	"strconv"

	"go.yaml.in/yaml/v3"
)

var (
	tools = []Tool{ToolFrames, ToolTCP, ToolRequests, ToolPingPong, ToolUDP, ToolStart, ToolCyclictest, ToolSpin, ToolChecks, ToolDensity, ToolPlanned, ToolRecovery, ToolImage, ToolEcho, ToolClocks}
	// figureNames are all figures, in the order in which errors list them.
	figureNames = append([]Figure{
		"packet_rate", "sent_rate", "latency_mean", "latency_p99", "latency_max", "throughput", "round_trip", "jitter", "start_time", "memory", "wakeup_max", "stall_max", "ticks", "syscalls_dropped",
		"disk", "threads", "memory_per_thread", "functions", "back_after", "outage", "clock_difference", "clock_bound", "runs", "build_time",
	}, checkFigures...)
	experimentRuntimes = []RuntimeName{RuntimeProcess, RuntimeRunc, RuntimeDocker, RuntimeVM}
)

// mostCellFunctions is how many functions a cell may bring up at once.
const mostCellFunctions = 200

var experimentFields = []field[Experiment]{
	{"apiVersion", true, func(d *decoder, n *yaml.Node, e *Experiment) { e.APIVersion = APIVersion }},
	{"kind", true, func(d *decoder, n *yaml.Node, e *Experiment) { e.Kind = KindExperiment }},
	{"name", true, func(d *decoder, n *yaml.Node, e *Experiment) { e.Name = d.name(n, "an experiment's name") }},
	{"title", true, func(d *decoder, n *yaml.Node, e *Experiment) { e.Title, _ = d.text(n, "title") }},
	{"source", true, func(d *decoder, n *yaml.Node, e *Experiment) { e.Source, _ = d.text(n, "source") }},
	{"notes", false, func(d *decoder, n *yaml.Node, e *Experiment) {
		d.list(n, "notes", func(item *yaml.Node) {
			if s, ok := d.text(item, "a note"); ok {
				e.Notes = append(e.Notes, s)
			}
		})
	}},
	{"rows", true, decodeRows},
	{"claims", false, decodeClaims},
}

var rowFields = []field[ExperimentRow]{
	{"name", true, func(d *decoder, n *yaml.Node, r *ExperimentRow) { r.Name = d.name(n, "a row's name") }},
	{"title", true, func(d *decoder, n *yaml.Node, r *ExperimentRow) { r.Title, _ = d.text(n, "title") }},
	{"published", false, func(d *decoder, n *yaml.Node, r *ExperimentRow) { r.Published, _ = d.text(n, "published") }},
	{"value", false, func(d *decoder, n *yaml.Node, r *ExperimentRow) { r.Value, _ = quantity(d, n, "value", parseFigure) }},
	{"figure", false, func(d *decoder, n *yaml.Node, r *ExperimentRow) { r.Figure, _ = choice(d, n, "figure", figureNames) }},
	{"cell", false, func(d *decoder, n *yaml.Node, r *ExperimentRow) { d.cell(n, &r.Cell) }},
	{"not_run", false, func(d *decoder, n *yaml.Node, r *ExperimentRow) { r.NotRun, _ = d.text(n, "not_run") }},
}

var cellFields = []field[Cell]{
	{"tool", true, func(d *decoder, n *yaml.Node, c *Cell) { c.Tool, _ = choice(d, n, "tool", tools) }},
	{"transport", false, func(d *decoder, n *yaml.Node, c *Cell) { c.Transport, _ = choice(d, n, "transport", benchTransports()) }},
	{"forwarding", false, func(d *decoder, n *yaml.Node, c *Cell) {
		c.Forwarding, _ = choice(d, n, "forwarding", forwardings)
	}},
	{"face", false, func(d *decoder, n *yaml.Node, c *Cell) { c.Face, _ = choice(d, n, "face", faces) }},
	{"runtime", false, func(d *decoder, n *yaml.Node, c *Cell) { c.Runtime, _ = choice(d, n, "runtime", experimentRuntimes) }},
	{"vnf", false, func(d *decoder, n *yaml.Node, c *Cell) { c.VNF, _ = choice(d, n, "VNF", vnfs) }},
	{"size", false, func(d *decoder, n *yaml.Node, c *Cell) { c.Size, _ = quantity(d, n, "size", parseFrameSize) }},
	{"load", false, func(d *decoder, n *yaml.Node, c *Cell) {
		if load, ok := quantity(d, n, "load", parseBenchLoad); ok {
			c.Load = load.String()
		}
	}},
	{"qdisc", false, func(d *decoder, n *yaml.Node, c *Cell) { c.Qdisc, _ = choice(d, n, "qdisc", qdiscNames()) }},
	{"rate", false, func(d *decoder, n *yaml.Node, c *Cell) { c.Rate = d.shapedRate(n, "rate") }},
	{"at", false, func(d *decoder, n *yaml.Node, c *Cell) { c.At, _ = choice(d, n, "place", []Place{AtSwitch}) }},
	{"queue", false, func(d *decoder, n *yaml.Node, c *Cell) { c.Queue, _ = choice(d, n, "queue", queueKinds) }},
	{"far_queue", false, func(d *decoder, n *yaml.Node, c *Cell) { c.FarQueue, _ = choice(d, n, "queue", queueKinds) }},
	{"datapath", false, func(d *decoder, n *yaml.Node, c *Cell) {
		c.Datapath, _ = choice(d, n, "datapath", []Datapath{DatapathKernel})
	}},
	{"bulk", false, func(d *decoder, n *yaml.Node, c *Cell) { c.Bulk, _ = d.boolean(n, "bulk") }},
	{"kernel", false, func(d *decoder, n *yaml.Node, c *Cell) {
		c.Kernel, _ = choice(d, n, "kernel", []VMKernel{VMKernelGeneric, VMKernelRT})
	}},
	{"vm_runtime", false, func(d *decoder, n *yaml.Node, c *Cell) {
		c.VMRuntime, _ = choice(d, n, "runtime in a machine", []RuntimeName{RuntimeRunc})
	}},
	{"nohz_full", false, func(d *decoder, n *yaml.Node, c *Cell) { c.NoHzFull, _ = d.boolean(n, "nohz_full") }},
	{"functions", false, func(d *decoder, n *yaml.Node, c *Cell) {
		c.Functions, _ = d.integer(n, "functions", 1, mostCellFunctions)
	}},
	{"stress", false, func(d *decoder, n *yaml.Node, c *Cell) { c.Stress, _ = d.boolean(n, "stress") }},
	{"hosts", false, func(d *decoder, n *yaml.Node, c *Cell) { c.Hosts, _ = d.integer(n, "hosts", 2, 2) }},
	{"underlay", false, func(d *decoder, n *yaml.Node, c *Cell) { c.Underlay = d.shapedRate(n, "underlay") }},
	{"delay", false, func(d *decoder, n *yaml.Node, c *Cell) { c.Delay = d.underlayDelay(n) }},
	{"memory", false, func(d *decoder, n *yaml.Node, c *Cell) { c.Memory = d.memory(n) }},
	{"image", false, func(d *decoder, n *yaml.Node, c *Cell) { c.Image = d.name(n, "an image's name") }},
}

var claimFields = []field[ShapeClaim]{
	{"text", true, func(d *decoder, n *yaml.Node, c *ShapeClaim) { c.Text, _ = d.text(n, "text") }},
	{"less", false, func(d *decoder, n *yaml.Node, c *ShapeClaim) { c.Less = d.name(n, "a row's name") }},
	{"than", false, func(d *decoder, n *yaml.Node, c *ShapeClaim) { c.Than = d.name(n, "a row's name") }},
	{"same", false, func(d *decoder, n *yaml.Node, c *ShapeClaim) {
		d.list(n, "same", func(item *yaml.Node) { c.Same = append(c.Same, d.name(item, "a row's name")) })
	}},
	{"within", false, func(d *decoder, n *yaml.Node, c *ShapeClaim) { c.Within, _ = quantity(d, n, "within", ParseRatio) }},
}

// ParseExperiment reads and validates an experiment; file is the name that errors
// print. The error, if any, is an Errors that holds every fault, by position.
func ParseExperiment(file string, data []byte) (*Experiment, error) {
	d, root, fault := open(file, data, KindExperiment)
	if fault != nil {
		return nil, Errors{fault}
	}
	e := &Experiment{File: file}
	d.checkVersion(root)
	if len(d.errs) == 0 {
		if values := object(d, root, "an experiment", experimentFields, e); values != nil {
			d.checkClaims(e, values["claims"])
		}
	}
	if errs := d.result(); errs != nil {
		return nil, errs
	}
	return e, nil
}

// IsExperiment reports whether a file says that it is an experiment, whatever
// faults it has.
func IsExperiment(data []byte) bool {
	root, fault := readYAML("", data, KindExperiment)
	if fault != nil || root.Kind != yaml.MappingNode {
		return false
	}
	for i := 0; i+1 < len(root.Content); i += 2 {
		if root.Content[i].Value == "kind" {
			return root.Content[i+1].Value == KindExperiment
		}
	}
	return false
}

func parseFigure(text string) (float64, error) {
	v, err := strconv.ParseFloat(text, 64)
	if err != nil || !(v > 0) || math.IsInf(v, 1) {
		return 0, &Error{Text: "a published value cannot be " + quote(text), Fix: "write a number above 0 in the figure's unit, or leave it out"}
	}
	return v, nil
}

func decodeRows(d *decoder, n *yaml.Node, e *Experiment) {
	names := newUnique("rows")
	d.list(n, "rows", func(item *yaml.Node) {
		var r ExperimentRow
		values := object(d, item, "a row", rowFields, &r)
		if values == nil {
			return
		}
		names.add(d, r.Name, values["name"])
		d.checkRow(item, &r, values)
		e.Rows = append(e.Rows, r)
	})
}

// checkRow judges what fields of a row say about each other.
func (d *decoder) checkRow(item *yaml.Node, r *ExperimentRow, values map[string]*yaml.Node) {
	switch measured := values["cell"] != nil; {
	case measured && values["not_run"] != nil:
		d.fail(values["not_run"], "remove it, or the cell", "a row is measured, or not run")
	case !measured && values["not_run"] == nil:
		d.fail(item, "add cell, or not_run with the reason", "the row says neither how it is measured nor why it is not")
	case !measured && (values["figure"] != nil || values["value"] != nil):
		d.fail(item, "remove figure and value", "a row that is not run has no figure to compare")
	case measured && values["figure"] == nil:
		d.fail(item, "add it", "a row that is measured needs the field %q", "figure")
	case measured && r.Cell.Tool != "" && r.Figure != "" && !contains(toolFigures[r.Cell.Tool], r.Figure):
		d.fail(values["figure"], "choose another tool or figure", "the tool %s gives no figure %q", r.Cell.Tool, r.Figure)
	case values["value"] != nil && r.Figure.PassFail():
		d.fail(values["value"], "remove it", "what holds or does not has no ratio to a published value")
	}
}

func (d *decoder) cell(n *yaml.Node, c *Cell) {
	values := object(d, n, "a cell", cellFields, c)
	if values == nil || c.Tool == "" {
		return
	}
	shaped := []string{"qdisc", "rate", "at", "queue", "far_queue", "datapath", "kernel", "vm_runtime", "hosts", "underlay", "delay"}
	need := map[Tool][]string{
		ToolFrames: {"transport", "face", "runtime", "size", "load"}, ToolTCP: {"transport", "runtime"}, ToolRequests: {"transport", "runtime"},
		ToolPingPong: {"transport", "runtime"}, ToolUDP: {"transport", "runtime", "load"}, ToolStart: {"runtime"},
		ToolChecks: {"runtime"}, ToolDensity: {"runtime", "functions"}, ToolRecovery: {"runtime"}, ToolClocks: {"transport", "runtime"}, ToolEcho: {"transport", "face", "runtime"}, ToolImage: {"image", "runtime"}, ToolSpin: {"runtime"},
	}[c.Tool]
	may := map[Tool][]string{
		ToolFrames: {"vnf", "forwarding"}, ToolEcho: {"forwarding", "hosts", "underlay", "delay"}, ToolTCP: shaped, ToolRequests: append([]string{"bulk"}, shaped...),
		ToolPingPong: append([]string{"bulk"}, shaped...), ToolUDP: shaped, ToolStart: {"memory"}, ToolRecovery: {"transport"}, ToolCyclictest: {"runtime", "kernel", "stress"}, ToolSpin: {"nohz_full"},
	}[c.Tool]
	for _, name := range need {
		if values[name] == nil {
			d.fail(n, "add it", "the tool %s needs the field %q", c.Tool, name)
		}
	}
	for _, f := range cellFields {
		if value := values[f.name]; value != nil && f.name != "tool" && !contains(need, f.name) && !contains(may, f.name) {
			d.fail(value, "remove it", "the tool %s takes no field %q", c.Tool, f.name)
		}
	}
	if c.Tool == ToolUDP && c.Load != "" && c.Offered().Bitrate == 0 {
		d.fail(values["load"], `write a bit rate such as "95Mbps"`, "the tool %s sends at a bit rate", c.Tool)
	}
	if load := c.Offered(); c.Tool == ToolFrames && (load.Searched() || load.OfPDR) {
		d.fail(values["load"], "write max or a rate; a matrix of dray bench searches", "an experiment does not search for a rate")
	}
	if values["rate"] != nil && values["qdisc"] == nil {
		d.fail(values["rate"], "add qdisc, or remove it", "a rate is that of a qdisc")
	}
	if c.At != "" && (c.Transport != "ovs" || !contains(switchKinds, c.Qdisc)) {
		d.fail(values["at"], "remove it, or use the transport ovs and the qdisc htb or hfsc", "only Open vSwitch sets a qdisc itself")
	}
	for _, name := range []string{"queue", "far_queue"} {
		if values[name] != nil && c.At != "" {
			d.fail(values[name], "remove it, or at: switch", "a switch lets nothing but a FIFO queue below its shaper")
		}
		if values[name] != nil && c.Qdisc != "tbf" && c.Qdisc != "htb" && c.Qdisc != "hfsc" {
			d.fail(values[name], "give the cell the qdisc tbf, htb or hfsc", "a queue is below a shaper")
		}
	}
	if values["far_queue"] != nil && values["queue"] == nil && c.At == "" {
		d.fail(values["far_queue"], "add queue, or remove it", "the far end's queue is in place of the cell's")
	}
	if c.Datapath != "" && c.Transport != "ovs" {
		d.fail(values["datapath"], "remove it, or use the transport ovs", "a datapath is that of Open vSwitch")
	}
	if values["vm_runtime"] != nil && c.Runtime != RuntimeVM {
		d.fail(values["vm_runtime"], "remove it, or write runtime: vm", "only a machine has a runtime of its own")
	}
	if values["memory"] != nil && c.Runtime != RuntimeVM {
		d.fail(values["memory"], "remove it, or write runtime: vm", "only a machine has memory of its own")
	}
	if c.Tool != ToolChecks && c.Runtime == RuntimeDocker {
		d.fail(values["runtime"], "write runc; a matrix of dray bench has containers of Docker's", "only the tool %s has functions of Docker's", ToolChecks)
	}
	if c.Tool == ToolImage && c.Runtime != "" && c.Runtime != RuntimeRunc {
		d.fail(values["runtime"], "write runc", "the folder of an image is the root of a function with runtime runc")
	}
	if c.Tool == ToolSpin && c.Runtime != "" && c.Runtime != RuntimeVM {
		d.fail(values["runtime"], "write vm", "the kernel's tick is asked for in a machine, which boots with a command line of its own")
	}
	d.checkCellHosts(c, values, contains(may, "hosts"))
	if c.Tool == ToolFrames && c.VNF == "" {
		c.VNF = VNFDirect
	}
}

func decodeClaims(d *decoder, n *yaml.Node, e *Experiment) {
	d.list(n, "claims", func(item *yaml.Node) {
		var c ShapeClaim
		values := object(d, item, "a claim", claimFields, &c)
		if values == nil {
			return
		}
		ordered, same := values["less"] != nil && values["than"] != nil, len(c.Same) == 2 && values["within"] != nil
		if ordered == same || !ordered && (values["less"] != nil || values["than"] != nil) || !same && (values["same"] != nil || values["within"] != nil) {
			d.fail(item, "write less and than, or same with two rows and within", "a claim says of two rows that one is below the other, or that they are the same")
			return
		}
		e.Claims = append(e.Claims, c)
	})
}

// checkClaims refuses claims about what is not there or cannot be compared.
func (d *decoder) checkClaims(e *Experiment, n *yaml.Node) {
	rows := map[string]ExperimentRow{}
	for _, r := range e.Rows {
		rows[r.Name] = r
	}
	for _, c := range e.Claims {
		first, second := c.Rows()
		a, okA := rows[first]
		b, okB := rows[second]
		switch {
		case first == "" || second == "": // reported already
		case !okA || !okB:
			missing := second
			if !okA {
				missing = first
			}
			d.fail(n, "name two rows of the experiment", "a claim speaks of a row %s that there is not", quote(missing))
		case first == second:
			d.fail(n, "name two rows", "a claim compares %s with itself", quote(first))
		case a.Figure.PassFail() || b.Figure.PassFail():
			d.fail(n, "compare rows with figures", "a claim compares what holds or does not")
		case a.NotRun == "" && b.NotRun == "" && a.Figure.Unit() != b.Figure.Unit():
			d.fail(n, "compare rows of one unit", "a claim compares %s (%s) with %s (%s)", quote(first), a.Figure.Unit(), quote(second), b.Figure.Unit())
		}
	}
}
