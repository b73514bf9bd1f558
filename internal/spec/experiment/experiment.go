// SPDX-License-Identifier: Apache-2.0

package experiment

import (
	"fmt"
	"slices"
	"strings"

	"github.com/drayage/dray/internal/spec/chain"
	"github.com/drayage/dray/internal/spec/matrix"
	"github.com/drayage/dray/internal/spec/units"
)

// Kind is the document kind of a published experiment.
const Kind = "Experiment"

// Experiment is one published experiment: the published results, how each figure is
// measured here, and which relations should hold on any machine.
type Experiment struct {
	APIVersion string   `json:"apiVersion"`
	Kind       string   `json:"kind"`
	Name       string   `json:"name"`
	Title      string   `json:"title"`
	Source     string   `json:"source"`          // where it was published
	Notes      []string `json:"notes,omitempty"` // contradictions in the publication, and what concerns all rows
	Rows       []Row    `json:"rows"`
	Claims     []Claim  `json:"claims,omitempty"`

	File string `json:"-"` // for errors
}

// Publication is the short name of the source, such as "K17".
func (e *Experiment) Publication() string {
	name, _, _ := strings.Cut(e.Source, ":")
	return name
}

// Row is one figure. Either Figure and Cell are set, or NotRun.
type Row struct {
	Name      string `json:"name"` // unique in the experiment; claims use it
	Title     string `json:"title"`
	Published string `json:"published,omitempty"` // in the source's words; empty: not published
	// Value is the published figure in Figure's unit; 0: no basis for a ratio.
	Value float64 `json:"value,omitempty"`
	// Differs says how the measurement differs from the source's; empty: it is the same,
	// or the source measured nothing like it.
	Differs string `json:"differs,omitempty"`
	Figure  Figure `json:"figure,omitempty"`
	Cell    Cell   `json:"cell"`
	NotRun  string `json:"not_run,omitempty"` // why no machine measures it yet
}

// Cell is what is brought up and measured. Rows with the same cell use the same trials,
// even in different experiments.
type Cell struct {
	Tool      Tool              `json:"tool,omitempty"`
	Transport string            `json:"transport,omitempty"`
	Face      chain.Face        `json:"face,omitempty"`
	Runtime   chain.RuntimeName `json:"runtime,omitempty"`
	// FarRuntime is the runtime of the far function; empty: Runtime.
	FarRuntime chain.RuntimeName `json:"far_runtime,omitempty"`
	VNF        matrix.VNF        `json:"vnf,omitempty"`
	Size       matrix.FrameSize  `json:"size,omitempty"`
	Load       string            `json:"load,omitempty"`  // as a matrix has it: "max", "1Mpps", "95Mbps"
	Batch      int               `json:"batch,omitempty"` // the most packets in one system call; 0: as many as are due
	Qdisc      string            `json:"qdisc,omitempty"`
	Rate       units.Bitrate     `json:"rate,omitempty"`      // of the qdisc
	At         chain.Place       `json:"at,omitempty"`        // where the qdisc is attached; empty: at the ports
	Queue      string            `json:"queue,omitempty"`     // the queue below the qdisc
	FarQueue   string            `json:"far_queue,omitempty"` // the same at the far end; empty: Queue
	Datapath   Datapath          `json:"datapath,omitempty"`  // of Open vSwitch; empty: the kernel's if it exists
	Message    int               `json:"message,omitempty"`   // bytes that each write of the generator has; 0: as the tool likes
	Buffer     int               `json:"buffer,omitempty"`    // bytes asked for the socket buffers of both ends; 0: as the kernel or the tool likes
	Times      int               `json:"times,omitempty"`     // how many times as long as the profile's trials; 0: once
	Bulk       bool              `json:"bulk,omitempty"`      // an unlimited TCP stream runs at the same time
	Kernel     chain.VMKernel    `json:"kernel,omitempty"`    // Debian's kernel flavour that is required; empty: any
	Stress     bool              `json:"stress,omitempty"`    // every CPU is kept busy as well
	Functions  int               `json:"functions,omitempty"` // how many come up at once
	Nodes      int               `json:"nodes,omitempty"`     // NUMA nodes with memory that are required: 2; 0: any
	Hosts      int               `json:"hosts,omitempty"`     // simulated ones: 2, with a function on each; 0: one host
	Underlay   units.Bitrate     `json:"underlay,omitempty"`  // of each host's line; 0: unlimited by Drayage
	Delay      units.Duration    `json:"delay,omitempty"`     // host to host, one way, in addition to the machine's own
	Memory     units.Bytes       `json:"memory,omitempty"`    // of the VM; 0: the default
	Image      string            `json:"image,omitempty"`     // the image to build
	// Forwarding is for a transport that has the choice; empty: its default.
	Forwarding chain.Forwarding `json:"forwarding,omitempty"`
	// VMRuntime runs the functions in their VMs; empty: as processes.
	VMRuntime chain.RuntimeName `json:"vm_runtime,omitempty"`
	// KernelFace is how the sending socket reaches the DPDK application that has its
	// function's port; empty: the port is the socket's own interface.
	KernelFace KernelFace `json:"kernel_face,omitempty"`
	// NoHzFull is set in the functions' VMs.
	NoHzFull bool `json:"nohz_full,omitempty"`
	Workers  int  `json:"workers,omitempty"` // of a pool, before its event
	// Event is what happens under traffic to a pool, or to an end of a fronthaul; empty: nothing.
	Event Event `json:"event,omitempty"`
	// State is where the pool's sessions are; empty: in a store.
	State State `json:"state,omitempty"`
}

// Event is what happens to the functions of a chain under traffic.
type Event string

// The events of a pool.
const (
	EventKill  Event = "kill"  // a worker's process is killed
	EventLeave Event = "leave" // a worker is asked to end
	EventAdd   Event = "add"   // another worker starts
)

// The events of a fronthaul.
const (
	EventKillDU Event = "kill-du" // the distributed unit's process is killed
	EventKillRU Event = "kill-ru" // the radio unit's process is killed
)

// State is where a pool of workers keeps its sessions.
type State string

// StateWorker is the memory of the worker that has the session's packets.
const StateWorker State = "worker"

// Datapath is where Open vSwitch forwards.
type Datapath string

// DatapathKernel is the module openvswitch.
const DatapathKernel Datapath = "kernel"

// KernelFace is the interface by which the kernel's sockets use a DPDK application.
type KernelFace string

// The kernel faces.
const (
	KernelFaceTap  KernelFace = "tap"  // DPDK's net_tap, made by an application that may configure interfaces
	KernelFaceVeth KernelFace = "veth" // a link within the function, from a netdev port to a dpdk port
)

// Tool is how a cell is measured.
type Tool string

// The tools of cells.
const (
	ToolFrames     Tool = "frames"     // draygen, as dray bench uses it
	ToolTCP        Tool = "tcp"        // iperf3
	ToolRequests   Tool = "requests"   // qperf, 1 byte over TCP
	ToolPingPong   Tool = "pingpong"   // sockperf, 64 bytes over UDP, together 1 Mb/s
	ToolUDP        Tool = "udp"        // iperf 2, at the cell's load
	ToolStart      Tool = "start"      // time, memory and disk of a function's sandbox, until a command has run in it
	ToolCyclictest Tool = "cyclictest" // on the host itself, or in a function
	ToolSpin       Tool = "spin"       // oslat, a spinning thread in a VM
	ToolChecks     Tool = "checks"     // forbidden actions, tried with and without the protection
	ToolDensity    Tool = "density"    // time and memory of many idle functions
	ToolPlanned    Tool = "planned"    // the planner's result for functions, with nothing brought up
	ToolRecovery   Tool = "recovery"   // outage of a function whose process is killed
	ToolImage      Tool = "image"      // builds an image, and runs its program in a function
	ToolEcho       Tool = "echo"       // draygen, sequential round trips of one packet
	ToolOneWay     Tool = "oneway"     // iperf 2 at the cell's load in both directions at once, by its stamps
	ToolSockets    Tool = "sockets"    // draygen over UDP sockets: as much as passes, then sequential round trips
	ToolClocks     Tool = "clocks"     // both directions of a link at once, as if its ends had different clocks
	ToolPool       Tool = "pool"       // a load balancer and workers with sessions: their packet rate, or what an event costs
	ToolRAN        Tool = "ran"        // a mobile that attaches to a software RAN, and what it gets
	ToolQueue      Tool = "queue"      // draygen, a sparse and a bulk stream through one queue, or one stream alone
	ToolFronthaul  Tool = "fronthaul"  // both ends of an O-RAN fronthaul: what they count, and the verdict on their link
)

// Figure is the part of a result that a row shows.
type Figure string

// Unit is the unit of a figure's values.
func (f Figure) Unit() string {
	if f.PassFail() {
		return "pass/fail"
	}
	return figureUnits[f]
}

// PassFail reports whether the figure is a check: 1 if it holds, 0 if not.
func (f Figure) PassFail() bool {
	return slices.Contains(checkFigures, f) || f == "runs" || f == "s1_met" || f == "link_met" || f == "agrees"
}

// Most reports whether the figure is a maximum, whose headline is the largest value
// seen.
func (f Figure) Most() bool {
	return f == "latency_max" || f == "wakeup_max" || f == "stall_max"
}

// ofEvent reports whether the figure, of a pool or a fronthaul, is what an event costs.
func (f Figure) ofEvent() bool { return slices.Contains(eventFigures, f) }

var eventFigures = []Figure{"sessions_lost", "sessions_kept", "sessions_moved", "packets_lost", "outage", "slots_lost"}

var figureUnits = map[Figure]string{
	"packet_rate": "kpps", "sent_rate": "kpps", "latency_mean": "µs", "latency_p99": "µs", "latency_max": "µs",
	"throughput": "Mb/s", "round_trip": "ms", "jitter": "ms", "loss": "% of packets",
	"start_time": "s", "memory": "MB", "wakeup_max": "µs", "stall_max": "µs", "ticks": "/s", "syscalls_dropped": "syscalls",
	"disk": "MB", "threads": "threads", "memory_per_thread": "GB", "functions": "functions", "back_after": "ms", "outage": "ms",
	"clock_difference": "µs", "clock_bound": "µs", "build_time": "s",
	"power": "W", "energy_per_packet": "µJ",
	"sessions_lost": "sessions", "sessions_kept": "sessions", "sessions_moved": "sessions", "packets_lost": "packets",
	"attach_time": "s", "uplink": "Mb/s", "real_time": "× real time",
	"cpu_epc": "% of a CPU", "cpu_enb": "% of a CPU", "cpu_ue": "% of a CPU", "subframe_enb": "µs", "subframe_ue": "µs",
	"on_time": "% of messages", "early": "% of messages", "late": "% of messages", "sequence_gaps": "per million messages",
	"uplink_late": "% of messages", "late_at_du": "% of messages", "message_rate": "thousand/s", "slots_lost": "slots",
}

// checkFigures are the pass/fail results of the tool checks.
var checkFigures = []Figure{
	"limits_huge_pages", "limits_memory", "limits_processes", "limits_cpus", "limits_nodes", "limits_devices",
	"hides_cpus", "hides_devices", "hides_processes", "hides_memory", "hides_huge_pages", "hides_sockets", "hides_host",
	"maps_users", "drops_capabilities", "filters_syscalls", "gains_nothing",
}

// Checks are the pass/fail figures of the tool checks.
func Checks() []Figure { return append([]Figure(nil), checkFigures...) }

// toolFigures are the figures of each tool.
var toolFigures = map[Tool][]Figure{
	ToolFrames:     {"packet_rate", "sent_rate", "throughput", "latency_mean", "latency_p99", "latency_max", "power", "energy_per_packet"},
	ToolTCP:        {"throughput"},
	ToolRequests:   {"round_trip"},
	ToolPingPong:   {"latency_mean", "latency_p99", "latency_max"},
	ToolUDP:        {"throughput", "jitter"},
	ToolStart:      {"start_time", "memory", "disk"},
	ToolCyclictest: {"wakeup_max"},
	ToolSpin:       {"stall_max", "ticks"},
	ToolChecks:     append([]Figure{"syscalls_dropped"}, Checks()...),
	ToolDensity:    {"start_time", "memory", "functions"},
	ToolPlanned:    {"threads", "memory_per_thread", "functions"},
	ToolRecovery:   {"back_after", "outage"},
	ToolImage:      {"runs", "disk", "build_time"},
	ToolEcho:       {"round_trip", "latency_mean", "latency_p99", "latency_max"},
	ToolOneWay:     {"latency_mean", "clock_difference"},
	ToolSockets:    {"packet_rate", "sent_rate", "round_trip", "latency_mean", "latency_p99", "latency_max"},
	ToolClocks:     {"clock_difference", "clock_bound", "latency_mean"},
	ToolPool:       {"packet_rate", "sent_rate", "sessions_lost", "sessions_kept", "sessions_moved", "packets_lost", "outage"},
	ToolRAN: {
		"attach_time", "round_trip", "throughput", "uplink", "real_time", "cpu_epc", "cpu_enb", "cpu_ue", "subframe_enb", "subframe_ue", "s1_met",
	},
	ToolQueue:     {"throughput", "latency_mean", "latency_p99", "loss", "jitter"},
	ToolFronthaul: {"on_time", "early", "late", "sequence_gaps", "uplink_late", "late_at_du", "message_rate", "link_met", "agrees", "slots_lost"},
}

// FiguresOf are the figures that a tool gives.
func FiguresOf(t Tool) []Figure { return slices.Clone(toolFigures[t]) }

// Offered is the cell's load; zero if it has none.
func (c Cell) Offered() matrix.Load {
	load, err := matrix.ParseLoad(c.Load)
	if err != nil {
		return matrix.Load{}
	}
	return load
}

// String is the cell's name in the identifiers of its trials.
func (c Cell) String() string {
	parts := []string{string(c.Tool)}
	size := ""
	if c.Tool == ToolFrames {
		size = c.Size.String()
	}
	rate := ""
	if c.Rate > 0 {
		rate = c.Rate.String()
	}
	far, stress, bulk := "", "", ""
	if c.Stress {
		stress = "stress"
	}
	if c.Bulk {
		bulk = "bulk"
	}
	if c.FarQueue != "" {
		far = "far-" + c.FarQueue
	}
	if c.FarRuntime != "" {
		far = "far-" + string(c.FarRuntime)
	}
	many, place := "", ""
	if c.At != "" {
		place = "at-" + string(c.At)
	}
	if c.Functions > 0 {
		many = fmt.Sprintf("%d-functions", c.Functions)
	}
	if c.Nodes > 0 {
		many = fmt.Sprintf("%d-nodes", c.Nodes)
	}
	if c.Hosts > 0 {
		many = fmt.Sprintf("%d-hosts", c.Hosts)
	}
	if c.Underlay > 0 {
		many += "-" + c.Underlay.String()
	}
	if c.Delay > 0 {
		many += "-" + c.Delay.String()
	}
	face := ""
	if c.KernelFace != "" {
		face = "kernel-face-" + string(c.KernelFace)
	}
	memory := ""
	if c.Memory > 0 {
		memory = c.Memory.String()
	}
	inMachine := ""
	if c.VMRuntime != "" {
		inMachine = "in-" + string(c.VMRuntime)
	}
	if c.NoHzFull { // never with VMRuntime
		inMachine = "nohz-full"
	}
	state := ""
	if c.State != "" {
		state = "state-" + string(c.State)
	}
	for _, part := range []string{
		many, c.Transport, face, string(c.Forwarding), string(c.Datapath), string(c.Face), string(c.Runtime), memory, inMachine, string(c.VNF), size, c.Load, numbered("batch", c.Batch), numbered("message", c.Message), numbered("buffer", c.Buffer), numbered("times", c.Times),
		c.Qdisc, rate, place, c.Queue, far, bulk, string(c.Kernel), stress, c.Image, numbered("workers", c.Workers), string(c.Event), state,
	} {
		if part != "" {
			parts = append(parts, part)
		}
	}
	return strings.Join(parts, "/")
}

// numbered is a part of a cell's name; empty for 0.
func numbered(what string, n int) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprintf("%s-%d", what, n)
}
