// SPDX-License-Identifier: Apache-2.0

package experiment

import (
	"math"
	"slices"
	"strconv"

	"github.com/drayage/dray/internal/spec/chain"
	"github.com/drayage/dray/internal/spec/matrix"
	"github.com/drayage/dray/internal/spec/parse"
	"github.com/drayage/dray/internal/spec/schema"
	"github.com/drayage/dray/internal/spec/units"
	"go.yaml.in/yaml/v3"
)

var (
	tools = []Tool{ToolFrames, ToolTCP, ToolRequests, ToolPingPong, ToolUDP, ToolStart, ToolCyclictest, ToolSpin, ToolChecks, ToolDensity, ToolPlanned, ToolRecovery, ToolImage, ToolEcho, ToolClocks}
	// figureNames are all figures, in the order that errors list them.
	figureNames = append([]Figure{
		"packet_rate", "sent_rate", "latency_mean", "latency_p99", "latency_max", "throughput", "round_trip", "jitter", "start_time", "memory", "wakeup_max", "stall_max", "ticks", "syscalls_dropped",
		"disk", "threads", "memory_per_thread", "functions", "back_after", "outage", "clock_difference", "clock_bound", "runs", "build_time",
	}, checkFigures...)
	runtimes = []chain.RuntimeName{chain.RuntimeProcess, chain.RuntimeRunc, chain.RuntimeDocker, chain.RuntimeVM}
)

// mostCellFunctions is the most functions that a cell may bring up at once.
const mostCellFunctions = 200

var fields = []parse.Field[Experiment]{
	{
		Name: "apiVersion", Required: true,
		Doc:    "The version of this format.",
		Form:   schema.Const(parse.APIVersion),
		Decode: func(d *parse.Decoder, n *yaml.Node, e *Experiment) { e.APIVersion = parse.APIVersion },
	},
	{
		Name: "kind", Required: true,
		Doc:    "The kind of document.",
		Form:   schema.Const(Kind),
		Decode: func(d *parse.Decoder, n *yaml.Node, e *Experiment) { e.Kind = Kind },
	},
	{
		Name: "name", Required: true,
		Doc:    "What `dray bench` calls the experiment.",
		Form:   schema.Pattern(parse.NamePattern.String()),
		Decode: func(d *parse.Decoder, n *yaml.Node, e *Experiment) { e.Name = d.Name(n, "an experiment's name") },
	},
	{
		Name: "title", Required: true,
		Doc:    "Its subject.",
		Form:   schema.Text(),
		Decode: func(d *parse.Decoder, n *yaml.Node, e *Experiment) { e.Title, _ = d.Text(n, "title") },
	},
	{
		Name: "source", Required: true,
		Doc:    "Where it was published.",
		Form:   schema.Text(),
		Decode: func(d *parse.Decoder, n *yaml.Node, e *Experiment) { e.Source, _ = d.Text(n, "source") },
	},
	{
		Name: "notes",
		Doc:  "Contradictions in the publication, and how this differs from it.",
		Form: schema.List(schema.Text(), 0, 0),
		Decode: func(d *parse.Decoder, n *yaml.Node, e *Experiment) {
			d.List(n, "notes", func(item *yaml.Node) {
				if s, ok := d.Text(item, "a note"); ok {
					e.Notes = append(e.Notes, s)
				}
			})
		},
	},
	{
		Name: "rows", Required: true,
		Doc:    "The figures.",
		Form:   schema.List(schema.Ref("row"), 0, 0),
		Decode: decodeRows,
	},
	{
		Name:   "claims",
		Doc:    "Relations that should hold on any machine.",
		Form:   schema.List(schema.Ref("claim"), 0, 0),
		Decode: decodeClaims,
	},
}

var rowFields = []parse.Field[Row]{
	{
		Name: "name", Required: true,
		Doc:    "The name of the row in claims.",
		Form:   schema.Pattern(parse.NamePattern.String()),
		Decode: func(d *parse.Decoder, n *yaml.Node, r *Row) { r.Name = d.Name(n, "a row's name") },
	},
	{
		Name: "title", Required: true,
		Doc:    "What is measured.",
		Form:   schema.Text(),
		Decode: func(d *parse.Decoder, n *yaml.Node, r *Row) { r.Title, _ = d.Text(n, "title") },
	},
	{
		Name:   "published",
		Doc:    "The published figure, in the source's words.",
		Form:   schema.Text(),
		Decode: func(d *parse.Decoder, n *yaml.Node, r *Row) { r.Published, _ = d.Text(n, "published") },
	},
	{
		Name: "value",
		Doc:  "The published figure as a number, in the unit of `figure`.",
		Form: schema.Schema{{Name: "type", Value: "number"}, {Name: "exclusiveMinimum", Value: 0}},
		Decode: func(d *parse.Decoder, n *yaml.Node, r *Row) {
			r.Value, _ = parse.Quantity(d, n, "value", parseFigure)
		},
	},
	{
		Name: "figure",
		Doc:  "The part of the cell's result that the row shows: packet_rate and sent_rate in kpps, latency, wakeup and stall in µs, ticks in 1/s, throughput in Mb/s, round_trip, jitter, back_after and outage in ms, start_time and build_time in s, memory and disk in MB, memory_per_thread in GB, clock_… in µs; runs, limits_…, hides_… and all after them are pass or fail.",
		Form: schema.Enum(figureNames),
		Decode: func(d *parse.Decoder, n *yaml.Node, r *Row) {
			r.Figure, _ = parse.Choice(d, n, "figure", figureNames)
		},
	},
	{
		Name:   "cell",
		Doc:    "How it is measured here.",
		Form:   schema.Ref("cell"),
		Decode: func(d *parse.Decoder, n *yaml.Node, r *Row) { decodeCell(d, n, &r.Cell) },
	},
	{
		Name:   "not_run",
		Doc:    "Why no machine measures it yet.",
		Form:   schema.Text(),
		Decode: func(d *parse.Decoder, n *yaml.Node, r *Row) { r.NotRun, _ = d.Text(n, "not_run") },
	},
}

var cellFields = []parse.Field[Cell]{
	{
		Name: "tool", Required: true,
		Doc:    "How it is measured.",
		Form:   schema.Enum(tools),
		Decode: func(d *parse.Decoder, n *yaml.Node, c *Cell) { c.Tool, _ = parse.Choice(d, n, "tool", tools) },
	},
	{
		Name: "transport",
		Doc:  "What joins the two functions.",
		Form: schema.Enum(matrix.Transports()),
		Decode: func(d *parse.Decoder, n *yaml.Node, c *Cell) {
			c.Transport, _ = parse.Choice(d, n, "transport", matrix.Transports())
		},
	},
	{
		Name: "forwarding",
		Doc:  "How the switch forwards, for a transport with that choice.",
		Form: schema.Enum(chain.Forwardings),
		Decode: func(d *parse.Decoder, n *yaml.Node, c *Cell) {
			c.Forwarding, _ = parse.Choice(d, n, "forwarding", chain.Forwardings)
		},
	},
	{
		Name: "face",
		Doc:  "How the functions see their ports.",
		Form: schema.Enum(chain.Faces),
		Decode: func(d *parse.Decoder, n *yaml.Node, c *Cell) {
			c.Face, _ = parse.Choice(d, n, "face", chain.Faces)
		},
	},
	{
		Name: "runtime",
		Doc:  "How the functions run; docker is for the tool checks, in the image dray-debian.",
		Form: schema.Enum(runtimes),
		Decode: func(d *parse.Decoder, n *yaml.Node, c *Cell) {
			c.Runtime, _ = parse.Choice(d, n, "runtime", runtimes)
		},
	},
	{
		Name:   "vnf",
		Doc:    "What is between the generator's ports.",
		Form:   schema.Enum(matrix.VNFs),
		Decode: func(d *parse.Decoder, n *yaml.Node, c *Cell) { c.VNF, _ = parse.Choice(d, n, "VNF", matrix.VNFs) },
	},
	{
		Name: "size",
		Doc:  "Length of each frame with FCS, bytes.",
		Form: schema.OneOf(schema.Const("imix"), schema.Integer(64, 9018)),
		Decode: func(d *parse.Decoder, n *yaml.Node, c *Cell) {
			c.Size, _ = parse.Quantity(d, n, "size", matrix.ParseFrameSize)
		},
	},
	{
		Name: "load",
		Doc:  "The offered load: max, ndr, pdr, a packet rate or a bit rate.",
		Form: schema.Pattern(matrix.LoadPattern),
		Decode: func(d *parse.Decoder, n *yaml.Node, c *Cell) {
			if load, ok := parse.Quantity(d, n, "load", matrix.ParseLoad); ok {
				c.Load = load.String()
			}
		},
	},
	{
		Name: "qdisc",
		Doc:  "The queueing discipline at both ends of the link.",
		Form: schema.Enum(chain.QdiscNames()),
		Decode: func(d *parse.Decoder, n *yaml.Node, c *Cell) {
			c.Qdisc, _ = parse.Choice(d, n, "qdisc", chain.QdiscNames())
		},
	},
	{
		Name:   "rate",
		Doc:    "The rate of that discipline.",
		Form:   schema.Ref("bitrate"),
		Decode: func(d *parse.Decoder, n *yaml.Node, c *Cell) { c.Rate = chain.DecodeShapedRate(d, n, "rate") },
	},
	{
		Name: "at",
		Doc:  "Where the discipline is attached: `switch` is Open vSwitch's own QoS table, for htb or hfsc without `queue` and `far_queue`. Default: at the functions' ports.",
		Form: schema.Const("switch"),
		Decode: func(d *parse.Decoder, n *yaml.Node, c *Cell) {
			c.At, _ = parse.Choice(d, n, "place", []chain.Place{chain.AtSwitch})
		},
	},
	{
		Name: "queue",
		Doc:  "The queue below the discipline, which must be tbf, htb or hfsc.",
		Form: schema.Enum(chain.QueueKinds),
		Decode: func(d *parse.Decoder, n *yaml.Node, c *Cell) {
			c.Queue, _ = parse.Choice(d, n, "queue", chain.QueueKinds)
		},
	},
	{
		Name: "far_queue",
		Doc:  "The same at the far end, if it differs from `queue`.",
		Form: schema.Enum(chain.QueueKinds),
		Decode: func(d *parse.Decoder, n *yaml.Node, c *Cell) {
			c.FarQueue, _ = parse.Choice(d, n, "queue", chain.QueueKinds)
		},
	},
	{
		Name: "datapath",
		Doc:  "Where Open vSwitch must forward: `kernel`, in the module openvswitch. Default: there if the kernel has it, otherwise in its userspace datapath.",
		Form: schema.Enum([]Datapath{DatapathKernel}),
		Decode: func(d *parse.Decoder, n *yaml.Node, c *Cell) {
			c.Datapath, _ = parse.Choice(d, n, "datapath", []Datapath{DatapathKernel})
		},
	},
	{
		Name:   "bulk",
		Doc:    "Whether an unlimited TCP stream runs in the same direction at the same time.",
		Form:   schema.Bool(),
		Decode: func(d *parse.Decoder, n *yaml.Node, c *Cell) { c.Bulk, _ = d.Boolean(n, "bulk") },
	},
	{
		Name: "kernel",
		Doc:  "The required flavour of Debian's kernel: `rt` is PREEMPT_RT.",
		Form: schema.Enum([]chain.VMKernel{chain.VMKernelGeneric, chain.VMKernelRT}),
		Decode: func(d *parse.Decoder, n *yaml.Node, c *Cell) {
			c.Kernel, _ = parse.Choice(d, n, "kernel", []chain.VMKernel{chain.VMKernelGeneric, chain.VMKernelRT})
		},
	},
	{
		Name: "vm_runtime",
		Doc:  "How the function runs in its machine: `runc`, as a container. Default: as a process.",
		Form: schema.Const("runc"),
		Decode: func(d *parse.Decoder, n *yaml.Node, c *Cell) {
			c.VMRuntime, _ = parse.Choice(d, n, "runtime in a machine", []chain.RuntimeName{chain.RuntimeRunc})
		},
	},
	{
		Name:   "nohz_full",
		Doc:    "Whether the machine's kernel stops its tick on a CPU with a single running thread.",
		Form:   schema.Bool(),
		Decode: func(d *parse.Decoder, n *yaml.Node, c *Cell) { c.NoHzFull, _ = d.Boolean(n, "nohz_full") },
	},
	{
		Name: "functions",
		Doc:  "How many functions come up at once.",
		Form: schema.Integer(1, mostCellFunctions),
		Decode: func(d *parse.Decoder, n *yaml.Node, c *Cell) {
			c.Functions, _ = d.Integer(n, "functions", 1, mostCellFunctions)
		},
	},
	{
		Name:   "stress",
		Doc:    "Whether every CPU is kept busy at the same time.",
		Form:   schema.Bool(),
		Decode: func(d *parse.Decoder, n *yaml.Node, c *Cell) { c.Stress, _ = d.Boolean(n, "stress") },
	},
	{
		Name:   "hosts",
		Doc:    "Simulated hosts, with a function on each, for the transports that join hosts. Default: one host.",
		Form:   schema.Const(2),
		Decode: func(d *parse.Decoder, n *yaml.Node, c *Cell) { c.Hosts, _ = d.Integer(n, "hosts", 2, 2) },
	},
	{
		Name: "underlay",
		Doc:  "The rate of each simulated host's line, in each direction. Default: no limit beyond the machine's own.",
		Form: schema.Pattern(`^[0-9]+([.][0-9]+)?(k|M|G|T)?bps$`),
		Decode: func(d *parse.Decoder, n *yaml.Node, c *Cell) {
			c.Underlay = chain.DecodeShapedRate(d, n, "underlay")
		},
	},
	{
		Name:   "delay",
		Doc:    "The one-way delay between simulated hosts, in addition to the machine's own. It needs the queueing discipline netem.",
		Form:   schema.Pattern(`^[0-9]+([.][0-9]+)?(us|ms|s)$`),
		Decode: func(d *parse.Decoder, n *yaml.Node, c *Cell) { c.Delay = chain.DecodeDelay(d, n) },
	},
	{
		Name:   "memory",
		Doc:    "The memory of the machine. Default: as in a chain that sets none.",
		Form:   schema.Pattern(`^[0-9]+([.][0-9]+)?(k|M|G|T|Ki|Mi|Gi|Ti)?$`),
		Decode: func(d *parse.Decoder, n *yaml.Node, c *Cell) { c.Memory = chain.DecodeMemory(d, n) },
	},
	{
		Name:   "image",
		Doc:    "The image to build, by the name of its recipe.",
		Form:   schema.Pattern(parse.NamePattern.String()),
		Decode: func(d *parse.Decoder, n *yaml.Node, c *Cell) { c.Image = d.Name(n, "an image's name") },
	},
}

var claimFields = []parse.Field[Claim]{
	{
		Name: "text", Required: true,
		Doc:    "The claim in words.",
		Form:   schema.Text(),
		Decode: func(d *parse.Decoder, n *yaml.Node, c *Claim) { c.Text, _ = d.Text(n, "text") },
	},
	{
		Name:   "less",
		Doc:    "The row whose figure is the smaller one.",
		Form:   schema.Pattern(parse.NamePattern.String()),
		Decode: func(d *parse.Decoder, n *yaml.Node, c *Claim) { c.Less = d.Name(n, "a row's name") },
	},
	{
		Name:   "than",
		Doc:    "The row whose figure is the larger one.",
		Form:   schema.Pattern(parse.NamePattern.String()),
		Decode: func(d *parse.Decoder, n *yaml.Node, c *Claim) { c.Than = d.Name(n, "a row's name") },
	},
	{
		Name: "same",
		Doc:  "Two rows whose figures are the same.",
		Form: schema.List(schema.Pattern(parse.NamePattern.String()), 2, 2),
		Decode: func(d *parse.Decoder, n *yaml.Node, c *Claim) {
			d.List(n, "same", func(item *yaml.Node) { c.Same = append(c.Same, d.Name(item, "a row's name")) })
		},
	},
	{
		Name: "within",
		Doc:  "How much either may exceed the other and still count as the same, such as \"10%\".",
		Form: schema.Schema{{Name: "type", Value: []string{"number", "string"}}},
		Decode: func(d *parse.Decoder, n *yaml.Node, c *Claim) {
			c.Within, _ = parse.Quantity(d, n, "within", units.ParseRatio)
		},
	},
}

// Parse reads and validates an experiment; file is the name for errors. The error, if
// any, is an Errors with every fault, by position.
func Parse(file string, data []byte) (*Experiment, error) {
	d, root, fault := parse.Open(file, data, Kind)
	if fault != nil {
		return nil, parse.Errors{fault}
	}
	e := &Experiment{File: file}
	d.CheckVersion(root)
	if !d.Failed() {
		if values := parse.Object(d, root, "an experiment", fields, e); values != nil {
			checkClaims(d, e, values["claims"])
		}
	}
	if errs := d.Result(); errs != nil {
		return nil, errs
	}
	return e, nil
}

// Is reports whether a file says that it is an experiment, even if it has faults.
func Is(data []byte) bool {
	root, fault := parse.ReadYAML("", data, Kind)
	if fault != nil || root.Kind != yaml.MappingNode {
		return false
	}
	for i := 0; i+1 < len(root.Content); i += 2 {
		if root.Content[i].Value == "kind" {
			return root.Content[i+1].Value == Kind
		}
	}
	return false
}

func parseFigure(text string) (float64, error) {
	v, err := strconv.ParseFloat(text, 64)
	if err != nil || !(v > 0) || math.IsInf(v, 1) {
		return 0, &parse.Error{Text: "a published value cannot be " + parse.Quote(text), Fix: "write a number above 0 in the figure's unit, or leave it out"}
	}
	return v, nil
}

func decodeRows(d *parse.Decoder, n *yaml.Node, e *Experiment) {
	names := parse.NewUnique("rows")
	d.List(n, "rows", func(item *yaml.Node) {
		var r Row
		values := parse.Object(d, item, "a row", rowFields, &r)
		if values == nil {
			return
		}
		names.Add(d, r.Name, values["name"])
		checkRow(d, item, &r, values)
		e.Rows = append(e.Rows, r)
	})
}

// checkRow checks the rules between fields of a row.
func checkRow(d *parse.Decoder, item *yaml.Node, r *Row, values map[string]*yaml.Node) {
	switch measured := values["cell"] != nil; {
	case measured && values["not_run"] != nil:
		d.Fail(values["not_run"], "remove it, or the cell", "a row is measured, or not run")
	case !measured && values["not_run"] == nil:
		d.Fail(item, "add cell, or not_run with the reason", "the row says neither how it is measured nor why it is not")
	case !measured && (values["figure"] != nil || values["value"] != nil):
		d.Fail(item, "remove figure and value", "a row that is not run has no figure to compare")
	case measured && values["figure"] == nil:
		d.Fail(item, "add it", "a row that is measured needs the field %q", "figure")
	case measured && r.Cell.Tool != "" && r.Figure != "" && !slices.Contains(toolFigures[r.Cell.Tool], r.Figure):
		d.Fail(values["figure"], "choose another tool or figure", "the tool %s gives no figure %q", r.Cell.Tool, r.Figure)
	case values["value"] != nil && r.Figure.PassFail():
		d.Fail(values["value"], "remove it", "what holds or does not has no ratio to a published value")
	}
}

func decodeCell(d *parse.Decoder, n *yaml.Node, c *Cell) {
	values := parse.Object(d, n, "a cell", cellFields, c)
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
			d.Fail(n, "add it", "the tool %s needs the field %q", c.Tool, name)
		}
	}
	for _, f := range cellFields {
		if value := values[f.Name]; value != nil && f.Name != "tool" && !slices.Contains(need, f.Name) && !slices.Contains(may, f.Name) {
			d.Fail(value, "remove it", "the tool %s takes no field %q", c.Tool, f.Name)
		}
	}
	if c.Tool == ToolUDP && c.Load != "" && c.Offered().Bitrate == 0 {
		d.Fail(values["load"], `write a bit rate such as "95Mbps"`, "the tool %s sends at a bit rate", c.Tool)
	}
	if load := c.Offered(); c.Tool == ToolFrames && (load.Searched() || load.OfPDR) {
		d.Fail(values["load"], "write max or a rate; a matrix of dray bench searches", "an experiment does not search for a rate")
	}
	if values["rate"] != nil && values["qdisc"] == nil {
		d.Fail(values["rate"], "add qdisc, or remove it", "a rate is that of a qdisc")
	}
	if c.At != "" && (c.Transport != "ovs" || !slices.Contains(chain.SwitchKinds, c.Qdisc)) {
		d.Fail(values["at"], "remove it, or use the transport ovs and the qdisc htb or hfsc", "only Open vSwitch sets a qdisc itself")
	}
	for _, name := range []string{"queue", "far_queue"} {
		if values[name] != nil && c.At != "" {
			d.Fail(values[name], "remove it, or at: switch", "a switch lets nothing but a FIFO queue below its shaper")
		}
		if values[name] != nil && c.Qdisc != "tbf" && c.Qdisc != "htb" && c.Qdisc != "hfsc" {
			d.Fail(values[name], "give the cell the qdisc tbf, htb or hfsc", "a queue is below a shaper")
		}
	}
	if values["far_queue"] != nil && values["queue"] == nil && c.At == "" {
		d.Fail(values["far_queue"], "add queue, or remove it", "the far end's queue is in place of the cell's")
	}
	if c.Datapath != "" && c.Transport != "ovs" {
		d.Fail(values["datapath"], "remove it, or use the transport ovs", "a datapath is that of Open vSwitch")
	}
	if values["vm_runtime"] != nil && c.Runtime != chain.RuntimeVM {
		d.Fail(values["vm_runtime"], "remove it, or write runtime: vm", "only a machine has a runtime of its own")
	}
	if values["memory"] != nil && c.Runtime != chain.RuntimeVM {
		d.Fail(values["memory"], "remove it, or write runtime: vm", "only a machine has memory of its own")
	}
	if c.Tool != ToolChecks && c.Runtime == chain.RuntimeDocker {
		d.Fail(values["runtime"], "write runc; a matrix of dray bench has containers of Docker's", "only the tool %s has functions of Docker's", ToolChecks)
	}
	if c.Tool == ToolImage && c.Runtime != "" && c.Runtime != chain.RuntimeRunc {
		d.Fail(values["runtime"], "write runc", "the folder of an image is the root of a function with runtime runc")
	}
	if c.Tool == ToolSpin && c.Runtime != "" && c.Runtime != chain.RuntimeVM {
		d.Fail(values["runtime"], "write vm", "the kernel's tick is asked for in a machine, which boots with a command line of its own")
	}
	checkCellHosts(d, c, values, slices.Contains(may, "hosts"))
	if c.Tool == ToolFrames && c.VNF == "" {
		c.VNF = matrix.VNFDirect
	}
}

func decodeClaims(d *parse.Decoder, n *yaml.Node, e *Experiment) {
	d.List(n, "claims", func(item *yaml.Node) {
		var c Claim
		values := parse.Object(d, item, "a claim", claimFields, &c)
		if values == nil {
			return
		}
		ordered, same := values["less"] != nil && values["than"] != nil, len(c.Same) == 2 && values["within"] != nil
		if ordered == same || !ordered && (values["less"] != nil || values["than"] != nil) || !same && (values["same"] != nil || values["within"] != nil) {
			d.Fail(item, "write less and than, or same with two rows and within", "a claim says of two rows that one is below the other, or that they are the same")
			return
		}
		e.Claims = append(e.Claims, c)
	})
}

// checkClaims refuses claims about rows that are missing or cannot be compared.
func checkClaims(d *parse.Decoder, e *Experiment, n *yaml.Node) {
	rows := map[string]Row{}
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
			d.Fail(n, "name two rows of the experiment", "a claim speaks of a row %s that there is not", parse.Quote(missing))
		case first == second:
			d.Fail(n, "name two rows", "a claim compares %s with itself", parse.Quote(first))
		case a.Figure.PassFail() || b.Figure.PassFail():
			d.Fail(n, "compare rows with figures", "a claim compares what holds or does not")
		case a.NotRun == "" && b.NotRun == "" && a.Figure.Unit() != b.Figure.Unit():
			d.Fail(n, "compare rows of one unit", "a claim compares %s (%s) with %s (%s)", parse.Quote(first), a.Figure.Unit(), parse.Quote(second), b.Figure.Unit())
		}
	}
}

// checkCellHosts requires hosts exactly for cells whose transport joins hosts; takes
// says whether the tool measures between hosts.
func checkCellHosts(d *parse.Decoder, c *Cell, values map[string]*yaml.Node, takes bool) {
	tunnel := slices.Contains(chain.Tunnels, c.Transport)
	switch {
	case tunnel && !takes:
		d.Fail(values["transport"], "use another tool, or another transport", "the tool %s measures on one host, and %s joins two", c.Tool, c.Transport)
	case tunnel && values["hosts"] == nil:
		d.Fail(values["transport"], "add hosts: 2, or use another transport", "the transport %s joins hosts", c.Transport)
	case !tunnel && takes && values["hosts"] != nil:
		d.Fail(values["hosts"], "remove it, or use the transport "+parse.Either(chain.Tunnels), "only a tunnel joins hosts")
	}
	for _, name := range []string{"underlay", "delay"} {
		if values[name] != nil && values["hosts"] == nil {
			d.Fail(values[name], "add hosts: 2, or remove it", "an underlay is between hosts")
		}
	}
}
