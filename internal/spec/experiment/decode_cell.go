// SPDX-License-Identifier: Apache-2.0

package experiment

import (
	"slices"

	"github.com/drayage/dray/internal/spec/chain"
	"github.com/drayage/dray/internal/spec/matrix"
	"github.com/drayage/dray/internal/spec/parse"
	"github.com/drayage/dray/internal/spec/schema"
	"github.com/drayage/dray/internal/spec/units"
	"go.yaml.in/yaml/v3"
)

var (
	tools    = []Tool{ToolFrames, ToolTCP, ToolRequests, ToolPingPong, ToolUDP, ToolStart, ToolCyclictest, ToolSpin, ToolChecks, ToolDensity, ToolPlanned, ToolRecovery, ToolImage, ToolEcho, ToolClocks, ToolOneWay, ToolSockets, ToolPool, ToolRAN, ToolFronthaul, ToolQueue}
	runtimes = []chain.RuntimeName{chain.RuntimeProcess, chain.RuntimeRunc, chain.RuntimeDocker, chain.RuntimeVM}
)

// Tools are all tools of cells.
func Tools() []Tool { return slices.Clone(tools) }

// mostTimes is the longest trial of a cell, as a multiple of the profile's.
const mostTimes = 10

// mostWorkers is the most workers of a pool, so that each has sessions.
const mostWorkers = 8

// mostCellFunctions is the most functions that a cell may bring up at once.
const mostCellFunctions = 200

var cellFields = []parse.Field[Cell]{
	parse.ChoiceField("tool", "How it is measured.", tools, func(c *Cell) *Tool { return &c.Tool }).Must(),
	parse.ChoiceField("transport", "What joins the two functions.",
		matrix.Transports(), func(c *Cell) *string { return &c.Transport }),
	parse.ChoiceField("forwarding", "How the switch forwards, for a transport with that choice.",
		chain.Forwardings, func(c *Cell) *chain.Forwarding { return &c.Forwarding }),
	parse.ChoiceField("face", "How the functions see their ports.",
		chain.Faces, func(c *Cell) *chain.Face { return &c.Face }),
	parse.ChoiceField("kernel_face", "How the sending socket reaches testpmd, which has its function's port: `tap`, by DPDK's net_tap and as the host's root; `veth`, by a link from a netdev port of the function to another dpdk port of it. Default: the port is the socket's own interface.",
		[]KernelFace{KernelFaceTap, KernelFaceVeth}, func(c *Cell) *KernelFace { return &c.KernelFace }).Called("kernel face"),
	parse.ChoiceField("runtime", "How the functions run: docker in the image dray-debian, or dray-vnf if their command is a program of Drayage's.",
		runtimes, func(c *Cell) *chain.RuntimeName { return &c.Runtime }),
	parse.ChoiceField("far_runtime", "How the far function runs, if not as `runtime` says.",
		[]chain.RuntimeName{chain.RuntimeProcess, chain.RuntimeRunc, chain.RuntimeVM}, func(c *Cell) *chain.RuntimeName { return &c.FarRuntime }).Called("runtime"),
	parse.ChoiceField("vnf", "What is between the generator's ports.",
		matrix.VNFs, func(c *Cell) *matrix.VNF { return &c.VNF }).Called("VNF"),
	parse.QuantityField("size", "Length of each frame with FCS, bytes.",
		schema.OneOf(schema.Const("imix"), schema.Integer(64, 9018)), matrix.ParseFrameSize, func(c *Cell) *matrix.FrameSize { return &c.Size }),
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
	parse.IntegerField("batch", "The most packets in one system call, sent or received, at ports with face netdev: 1 is one call for each packet. Default: as many as are due, at most 64.",
		1, matrix.MaxBatch, func(c *Cell) *int { return &c.Batch }),
	parse.ChoiceField("qdisc", "The queueing discipline at both ends of the link; `prio` at native ports alone, and of the tool queue.",
		append(chain.KernelQdiscs(), prio), func(c *Cell) *string { return &c.Qdisc }),
	parse.ValueField("rate", "The rate of that discipline.",
		schema.Ref("bitrate"), chain.DecodeShapedRate, func(c *Cell) *units.Bitrate { return &c.Rate }),
	parse.ChoiceField("at", "Where the discipline is attached: `switch` is Open vSwitch's own QoS table, without `queue` and `far_queue`, for htb, hfsc, sfq, codel and fq_codel. The latter three set no rate: a tbf at the functions' ports then does. Default: at the functions' ports.",
		[]chain.Place{chain.AtSwitch}, func(c *Cell) *chain.Place { return &c.At }).Called("place").As(schema.Const("switch")),
	parse.ChoiceField("queue", "The queue below the discipline, which must be tbf, htb or hfsc.",
		chain.KernelQueues, func(c *Cell) *string { return &c.Queue }),
	parse.ChoiceField("far_queue", "The same at the far end, if it differs from `queue`.",
		chain.KernelQueues, func(c *Cell) *string { return &c.FarQueue }).Called("queue"),
	parse.ChoiceField("datapath", "Where Open vSwitch must forward: `kernel`, in the module openvswitch. Default: there if the kernel has it, otherwise in its userspace datapath.",
		[]Datapath{DatapathKernel}, func(c *Cell) *Datapath { return &c.Datapath }),
	parse.IntegerField("message", "Bytes of each datagram or write of the generator. Default: datagrams that fill a packet, and iperf3's own writes.",
		1, 65507, func(c *Cell) *int { return &c.Message }),
	parse.IntegerField("buffer", "Bytes asked for each socket buffer at both ends. Default: the kernel's.",
		1024, 1<<30, func(c *Cell) *int { return &c.Buffer }),
	parse.IntegerField("times", "How many times as long as the profile's other trials: 10 is 100 s in the profile paper, and 10 s in quick. Default: 1.",
		2, mostTimes, func(c *Cell) *int { return &c.Times }),
	parse.BooleanField("bulk", "Whether an unlimited TCP stream runs in the same direction at the same time.",
		func(c *Cell) *bool { return &c.Bulk }),
	parse.ChoiceField("kernel", "The required flavour of Debian's kernel: `lowlatency` is the generic one booted with preempt=full, `rt` is PREEMPT_RT.",
		chain.VMKernels, func(c *Cell) *chain.VMKernel { return &c.Kernel }),
	parse.ChoiceField("vm_runtime", "How the function runs in its machine: `runc`, as a container. Default: as a process.",
		[]chain.RuntimeName{chain.RuntimeRunc}, func(c *Cell) *chain.RuntimeName { return &c.VMRuntime }).Called("runtime in a machine").As(schema.Const("runc")),
	parse.BooleanField("nohz_full", "Whether the machine's kernel stops its tick on a CPU with a single running thread.",
		func(c *Cell) *bool { return &c.NoHzFull }),
	parse.IntegerField("functions", "How many functions come up at once.",
		1, mostCellFunctions, func(c *Cell) *int { return &c.Functions }),
	parse.IntegerField("nodes", "How many NUMA nodes with memory the machine must have. Default: any number.",
		2, 2, func(c *Cell) *int { return &c.Nodes }).As(schema.Const(2)),
	parse.BooleanField("stress", "Whether every CPU is kept busy at the same time.",
		func(c *Cell) *bool { return &c.Stress }),
	parse.IntegerField("hosts", "Simulated hosts, with a function on each, for the transports that join hosts. Default: one host.",
		2, 2, func(c *Cell) *int { return &c.Hosts }).As(schema.Const(2)),
	parse.ValueField("underlay", "The rate of each simulated host's line, in each direction. Default: no limit beyond the machine's own.",
		schema.Pattern(`^[0-9]+([.][0-9]+)?(k|M|G|T)?bps$`), chain.DecodeShapedRate, func(c *Cell) *units.Bitrate { return &c.Underlay }),
	parse.ReadField("delay", "The one-way delay between simulated hosts, in addition to the machine's own. It needs the queueing discipline netem.",
		schema.Pattern(`^[0-9]+([.][0-9]+)?(us|ms|s)$`), chain.DecodeDelay, func(c *Cell) *units.Duration { return &c.Delay }),
	parse.ReadField("memory", "The memory of the machine. Default: as in a chain that sets none.",
		schema.Pattern(`^[0-9]+([.][0-9]+)?(k|M|G|T|Ki|Mi|Gi|Ti)?$`), chain.DecodeMemory, func(c *Cell) *units.Bytes { return &c.Memory }),
	parse.IntegerField("workers", "How many workers a load balancer has, before `event`.",
		1, mostWorkers, func(c *Cell) *int { return &c.Workers }),
	parse.ChoiceField("event", "What happens to the workers under traffic: one is killed, one is asked to leave, or one is added. Default: nothing.",
		[]Event{EventKill, EventLeave, EventAdd, EventKillDU, EventKillRU}, func(c *Cell) *Event { return &c.Event }),
	parse.ChoiceField("state", "Where the workers keep their sessions: `worker`, each in its own memory. Default: in Redis, a function of its own.",
		[]State{StateWorker}, func(c *Cell) *State { return &c.State }).As(schema.Const("worker")),
	parse.NameField("image", "an image's name", "The image to build, by the name of its recipe.",
		func(c *Cell) *string { return &c.Image }),
}

func decodeCell(d *parse.Decoder, n *yaml.Node, c *Cell) {
	values := parse.Object(d, n, "a cell", cellFields, c)
	if values == nil || c.Tool == "" {
		return
	}
	own := toolCells[c.Tool]
	for _, name := range own.needs {
		if values[name] == nil {
			d.Fail(n, "add it", "the tool %s needs the field %q", c.Tool, name)
		}
	}
	for _, f := range cellFields {
		if value := values[f.Name]; value != nil && f.Name != "tool" && !slices.Contains(own.needs, f.Name) && !slices.Contains(own.takes, f.Name) {
			d.Fail(value, "remove it", "the tool %s takes no field %q", c.Tool, f.Name)
		}
	}
	if own.check != nil {
		own.check(d, c, values)
	}
	checkCellQdisc(d, c, values)
	checkCellMachine(d, c, values)
	checkCellHosts(d, c, values, slices.Contains(own.takes, "hosts"))
	if c.Datapath != "" && c.Transport != "ovs" && c.Transport != "ovs-vxlan" {
		d.Fail(values["datapath"], "remove it, or use the transport ovs or ovs-vxlan", "only Open vSwitch has a datapath to choose")
	}
}
