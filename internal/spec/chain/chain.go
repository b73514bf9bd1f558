// SPDX-License-Identifier: Apache-2.0

// Package chain holds the nouns of Drayage: a Chain of Functions, their Ports, the
// Links between them and the requirements of each Link. It parses and validates chain
// files; it knows nothing of hosts, drivers or clocks.
package chain

import (
	"net/netip"
	"slices"

	"github.com/drayage/dray/internal/spec/parse"
	"github.com/drayage/dray/internal/spec/units"
)

// APIVersion is the version of the chain file format that this package reads.
const APIVersion = "drayage/v1"

// Kind is the only kind of document that a chain file may hold.
const Kind = "Chain"

// Chain is one parsed and validated chain file.
type Chain struct {
	APIVersion string     `json:"apiVersion"`
	Kind       string     `json:"kind"`
	Name       string     `json:"name"`
	Policy     Policy     `json:"policy"`
	Hosts      *Hosts     `json:"hosts,omitempty"` // nil: all on one host
	Functions  []Function `json:"functions"`
	Links      []Link     `json:"links"`
	Paths      []Path     `json:"paths,omitempty"`

	// File is the name for errors; empty for a chain made in code.
	File string `json:"-"`
}

// Policy says what happens if a requirement cannot be met, and how far a function is
// trusted.
type Policy struct {
	OnInfeasible OnInfeasible `json:"on_infeasible"`
	// Privileged permits transports that need privileges of their functions, such as a
	// capability on the host, and grants these. No function ever starts with all
	// privileges.
	Privileged bool `json:"privileged"`
}

// OnInfeasible is what `dray` does with a chain that the planner cannot satisfy.
type OnInfeasible string

const (
	Refuse OnInfeasible = "refuse"
	Warn   OnInfeasible = "warn"
)

// RuntimeName names a way to run a function.
type RuntimeName string

const (
	RuntimeRunc     RuntimeName = "runc" // the default
	RuntimeProcess  RuntimeName = "process"
	RuntimeDocker   RuntimeName = "docker"
	RuntimeVM       RuntimeName = "vm"
	RuntimeExternal RuntimeName = "external"
)

// Contained reports whether the function runs in a container of this host's own kernel.
func (n RuntimeName) Contained() bool { return n == RuntimeRunc || n == RuntimeDocker }

// SCTP is how a function's SCTP sockets work where the kernel has no SCTP.
type SCTP string

const (
	SCTPIP  SCTP = "ip"  // packets of IP protocol 132
	SCTPUDP SCTP = "udp" // in UDP (RFC 6951)
)

// Function is a container or process that handles packets (a VNF or CNF).
type Function struct {
	Name      string            `json:"name"`
	Of        string            `json:"of,omitempty"` // the function of which it is an instance; empty: it has no instances
	Runtime   RuntimeName       `json:"runtime"`
	Host      string            `json:"host,omitempty"`   // one of the chain's Hosts; empty if there are none, or the planner chooses it
	Image     string            `json:"image,omitempty"`  // docker image reference
	Rootfs    string            `json:"rootfs,omitempty"` // absolute path; empty: the host's root, read-only
	Command   []string          `json:"command,omitempty"`
	Env       map[string]string `json:"env,omitempty"`
	CPUs      CPURequest        `json:"cpus,omitempty"`
	Compute   *Compute          `json:"compute,omitempty"`   // nil: CPUs are its own
	Memory    units.Bytes       `json:"memory,omitempty"`    // 0: no limit
	Split     Split             `json:"split,omitempty"`     // towards the core; empty: none
	Pids      int               `json:"pids,omitempty"`      // 0: the runtime's default of 512
	HugePages []HugePages       `json:"hugepages,omitempty"` // one entry a page size, ascending
	Restart   Restart           `json:"restart"`
	SCTP      SCTP              `json:"sctp,omitempty"`     // empty: what the kernel has
	External  *External         `json:"external,omitempty"` // exactly for RuntimeExternal
	VM        *VM               `json:"vm,omitempty"`       // only for RuntimeVM; nil: the defaults
	Ports     []Port            `json:"ports"`
	Tuns      []Tun             `json:"tuns,omitempty"` // for RuntimeProcess, RuntimeRunc and RuntimeDocker

	// Instances is how many of the function the file asks for; 0 in a parsed chain, which
	// has a function for each.
	Instances int `json:"-"`

	Pos      parse.Position            `json:"-"`
	FieldPos map[string]parse.Position `json:"-"` // by field name, of the fields in the file
}

// CPURequest asks for CPUs: either a number that the planner chooses and pins, or an
// explicit set. The zero value means any CPU.
type CPURequest struct {
	Count int   `json:"count,omitempty"`
	Set   []int `json:"set,omitempty"` // ascending, without duplicates; Count is then 0
}

// Number is how many CPUs are requested; 0 means unpinned.
func (c CPURequest) Number() int {
	if len(c.Set) > 0 {
		return len(c.Set)
	}
	return c.Count
}

// Compute is the time that a function must get of each of its CPUs.
type Compute struct {
	Share    units.Ratio    `json:"share"`
	Deadline units.Duration `json:"deadline"`
}

// HugePages is the maximum hugetlb memory of one page size for a function.
type HugePages struct {
	Size  units.Bytes `json:"size"`  // page size: 2Mi or 1Gi
	Limit units.Bytes `json:"limit"` // a multiple of Size
}

// Restart says when a function's command is restarted.
type Restart string

const (
	RestartNever     Restart = "never" // the default
	RestartOnFailure Restart = "on-failure"
	RestartAlways    Restart = "always"
)

// External names a container or process that Drayage did not start. Exactly one field
// is set.
type External struct {
	PID       int    `json:"pid,omitempty"`
	Container string `json:"container,omitempty"` // docker container name or id
	Netns     string `json:"netns,omitempty"`     // absolute path of a network namespace file
}

// VM describes the machine of a function with runtime vm.
type VM struct {
	Kernel VMKernel `json:"kernel"`
	// HugePages backs the machine's memory with the host's 2 MiB pages.
	HugePages bool `json:"hugepages"`
	// NoHzFull stops the kernel's tick on every virtual CPU but the first while a
	// single thread runs there.
	NoHzFull bool `json:"nohz_full"`
	// Runtime is what runs the command in the machine: RuntimeProcess or RuntimeRunc.
	Runtime RuntimeName `json:"runtime"`
}

// The memory of a machine on top of its function's, and its memory if the function has
// no limit.
const (
	vmKernelMemory  = 256 << 20
	vmDefaultMemory = 512 << 20
)

// VMPage is the page size of machine memory backed by huge pages, and of the pages that
// the machine itself keeps for DPDK applications.
const VMPage units.Bytes = 2 << 20

// vmPages is the huge page memory, in bytes, of a machine with dpdk ports if the
// function names none: testpmd takes 380 MB by default.
const vmPages units.Bytes = 512 << 20

// OwnPages is the huge page memory in bytes, in pages of VMPage, that the VM of a
// function with runtime vm keeps for DPDK applications. It is part of MachineMemory; 0
// if no port has the face dpdk.
func (f Function) OwnPages() units.Bytes {
	if f.Runtime != RuntimeVM || !f.HasPort(FaceDPDK) {
		return 0
	}
	if len(f.HugePages) == 0 {
		return vmPages
	}
	return f.HugePages[0].Limit
}

// HostPages are the host's huge pages that the function may use. The pages of a
// function in a machine are part of the machine's memory instead; see OwnPages.
func (f Function) HostPages() []HugePages {
	if f.Runtime == RuntimeVM {
		return nil
	}
	return f.HugePages
}

// HasPort reports whether any port of the function has the face.
func (f Function) HasPort(face Face) bool {
	return slices.ContainsFunc(f.Ports, func(p Port) bool { return p.Face == face })
}

// MachineMemory is the memory, in whole VMPages, of the machine of a function with
// runtime vm; 0 for other runtimes.
func (f Function) MachineMemory() units.Bytes {
	switch {
	case f.Runtime != RuntimeVM:
		return 0
	case f.Memory == 0:
		return vmDefaultMemory + f.OwnPages()
	}
	return (f.Memory+vmKernelMemory+VMPage-1)/VMPage*VMPage + f.OwnPages()
}

// VMKernel is one of Debian's kernels.
type VMKernel string

const (
	VMKernelGeneric    VMKernel = "generic"    // the default: linux-image-amd64
	VMKernelLowLatency VMKernel = "lowlatency" // the same, booted with preempt=full
	VMKernelRT         VMKernel = "rt"         // PREEMPT_RT: linux-image-rt-amd64
)

// Face is how a function sees its port.
type Face string

const (
	FaceNetdev Face = "netdev" // a network interface with the port's name
	FaceNative Face = "native" // a socket that libdray opens
	FaceDPDK   Face = "dpdk"   // a device (ethdev) of the function's own DPDK application
)

// Port is what a function sees of a link. Its name, addresses, MTU and queue
// count never change while the function runs.
type Port struct {
	Name   string       `json:"name"` // 1–15 bytes: it is the interface's name
	Face   Face         `json:"face"`
	IP     netip.Prefix `json:"ip,omitempty"`   // zero: the planner assigns one
	MAC    MAC          `json:"mac,omitempty"`  // zero: the planner derives one
	MTU    int          `json:"mtu"`            // bytes of L3 packet; default 1500
	Queues int          `json:"queues"`         // default 1
	Hold   *Hold        `json:"hold,omitempty"` // native ports only; nil: no bound
	QoS    *Qdisc       `json:"qos,omitempty"`  // of the port's egress, in place of the link's; nil: the link's

	Pos      parse.Position            `json:"-"`
	FieldPos map[string]parse.Position `json:"-"` // by field name, of the fields in the file
}

// Tun is an interface whose packets a program of the function reads and writes. It is
// part of no link.
type Tun struct {
	Name string       `json:"name"` // as of a port, and of none of its ports
	IP   netip.Prefix `json:"ip"`
	MTU  int          `json:"mtu"` // bytes of L3 packet; default 1500

	Pos      parse.Position            `json:"-"`
	FieldPos map[string]parse.Position `json:"-"` // by field name, of the fields in the file
}

// Hold limits how many of its peer's buffers a native port may keep.
type Hold struct {
	Packets int    `json:"packets"` // per queue
	Beyond  Beyond `json:"beyond"`
}

// Beyond says what happens to packets that arrive at a port with a full hold.
type Beyond string

const (
	BeyondDrop Beyond = "drop" // the default: returned at once, and counted
	BeyondCopy Beyond = "copy" // copied to the receiver's own memory
)

// Isolation limits what the two ends of a link may share.
type Isolation string

const (
	IsolationSlice          Isolation = "slice"
	IsolationLink           Isolation = "link" // the default
	IsolationNoPeerMemory   Isolation = "no-peer-memory"
	IsolationNoSharedMemory Isolation = "no-shared-memory"
)

// TransportAuto lets the planner choose.
const TransportAuto = "auto"

// Forwarding is how a user-space switch decides where a packet goes.
type Forwarding string

const (
	ForwardingDirect   Forwarding = "direct"   // between exactly two ends, whatever the addresses
	ForwardingLearning Forwarding = "learning" // by the addresses seen at each end
)

// Traffic is the protocol of bitrate measurements.
type Traffic string

const (
	TrafficUDP Traffic = "udp" // the default: payload of datagrams, as in user planes
	TrafficTCP Traffic = "tcp" // goodput of one stream
)

// Link joins two or more ends and carries the requirement.
type Link struct {
	Name      string    `json:"name"`
	Ends      []End     `json:"ends"`
	Transport string    `json:"transport"` // TransportAuto or a driver's name
	Isolation Isolation `json:"isolation"`
	// Forwarding is for a transport that has the choice; empty: direct between two
	// ends, learning between more.
	Forwarding Forwarding `json:"forwarding,omitempty"`
	// Traffic is the protocol for bitrates. Delay and loss are always measured with UDP
	// packets.
	Traffic Traffic `json:"traffic"`
	// Frame is the length of UDP frames, in bytes with FCS; 0: frames that fill the
	// MTU.
	Frame int `json:"frame,omitempty"`
	// Load is the one-way traffic while latency is measured. HasLoad false: 10 % of
	// Requires.MinBitrate.
	Load    units.Bitrate `json:"load"`
	HasLoad bool          `json:"-"`
	// Slotted is the traffic instead of Load; none: datagrams.
	Slotted
	Requires Requires `json:"requires"`
	QoS      *Qdisc   `json:"qos,omitempty"` // on the egress of every port of the link without its own
	// Messages asks for buffers of a second size; nil: packets only.
	Messages *Messages `json:"messages,omitempty"`

	Pos      parse.Position            `json:"-"`
	FieldPos map[string]parse.Position `json:"-"` // by field name, of the fields in the file
}

// End is a function's port or an uplink (a host interface). Exactly one of (Function,
// Port) and Uplink is set.
type End struct {
	Function string `json:"function,omitempty"`
	Port     string `json:"port,omitempty"`
	Uplink   string `json:"uplink,omitempty"`

	Pos parse.Position `json:"-"`
}

// IsUplink reports whether the end is a host interface.
func (e End) IsUplink() bool { return e.Uplink != "" }

// String is "function.port", or "uplink:interface".
func (e End) String() string {
	if e.IsUplink() {
		return "uplink:" + e.Uplink
	}
	return e.Function + "." + e.Port
}

// Messages are what native ports pass in addition to packets: contiguous, and published
// whole.
type Messages struct {
	Size  units.Bytes `json:"size"`  // of the largest
	Count int         `json:"count"` // in flight per queue and direction
}

// Requires states what a link must do. A zero field requires nothing. The names follow
// ETSI GS NFV-SOL 001 (tosca.datatypes.nfv.Qos, VirtualLinkBitrateRequirements).
type Requires struct {
	Latency    units.Duration   `json:"latency,omitempty"`                // one-way, at Percentile
	Percentile units.Percentile `json:"percentile,omitempty"`             // default 99 if latency or PDV is required
	PDV        units.Duration   `json:"packet_delay_variation,omitempty"` // D(i)−Dmin at Percentile, RFC 5481
	LossRatio  *units.Ratio     `json:"packet_loss_ratio,omitempty"`      // nil: none required; 0 cannot be proven and is refused
	OnTime     units.Ratio      `json:"on_time,omitempty"`                // share of a SlotLoad's messages within their receive windows
	MinBitrate units.Bitrate    `json:"min_bitrate,omitempty"`            // each direction
	MaxBitrate units.Bitrate    `json:"max_bitrate,omitempty"`            // each direction; enforced by shaping, then measured
	PacketRate units.PacketRate `json:"packet_rate,omitempty"`            // each direction, 64 B frames
	MTU        int              `json:"mtu,omitempty"`                    // bytes of L3 packet that must pass unfragmented

	Pos map[string]parse.Position `json:"-"` // by field name in the file
}

// Qdisc is a queueing discipline and its parameters, in tc's own terms.
type Qdisc struct {
	Kind     string         `json:"qdisc"`              // pfifo, bfifo, tbf, htb, hfsc, sfq, codel, fq_codel, netem, prio, slot
	Rate     units.Bitrate  `json:"rate,omitempty"`     // tbf, htb, hfsc, netem, prio; with classes: of all together
	Ceil     units.Bitrate  `json:"ceil,omitempty"`     // htb
	Burst    units.Bytes    `json:"burst,omitempty"`    // tbf, htb, prio; hfsc in user space
	Latency  units.Duration `json:"latency,omitempty"`  // tbf: the longest a packet may queue; netem: the delay added
	Limit    int            `json:"limit,omitempty"`    // pfifo, sfq, codel, fq_codel, netem, slot: packets; bfifo: bytes
	Target   units.Duration `json:"target,omitempty"`   // codel, fq_codel: the wait that is accepted
	Interval units.Duration `json:"interval,omitempty"` // codel, fq_codel: the time for which the wait must be longer
	ECN      *bool          `json:"ecn,omitempty"`      // codel, fq_codel: mark instead of drop; nil: the kind's default
	Slot     units.Duration `json:"slot,omitempty"`     // slot: its length
	Offset   units.Duration `json:"offset,omitempty"`   // slot: when slots begin after a multiple of their length
	Clock    Clock          `json:"clock,omitempty"`    // slot: the clock of the slots; empty: monotonic
	Child    *Qdisc         `json:"child,omitempty"`    // of tbf, htb and hfsc: what queues below the shaper; nil: a FIFO
	Classes  []Class        `json:"classes,omitempty"`  // of prio, htb and hfsc: what queues below it, in place of Child
	At       Place          `json:"at,omitempty"`       // where it is attached; empty: at the port

	Pos      parse.Position            `json:"-"`
	FieldPos map[string]parse.Position `json:"-"` // by field name, of the fields in the file
}

// Class is a traffic class below a prio, htb or hfsc. A packet is of the first class that
// it matches; a class without DSCP, PCP and Meta takes the rest.
type Class struct {
	Name     string         `json:"name"`
	DSCP     []int          `json:"dscp,omitempty"`      // 0 to 63 (RFC 2474)
	PCP      []int          `json:"pcp,omitempty"`       // 0 to 7 (IEEE 802.1Q)
	Meta     *int           `json:"meta,omitempty"`      // the metadata that the application gave its packets
	Rate     units.Bitrate  `json:"rate,omitempty"`      // htb, hfsc: what it is granted
	Ceil     units.Bitrate  `json:"ceil,omitempty"`      // htb: 0 is Rate; hfsc: 0 is no limit
	Burst    units.Bytes    `json:"burst,omitempty"`     // htb
	Priority int            `json:"priority,omitempty"`  // htb: a lower number borrows first
	Peak     units.Bitrate  `json:"peak,omitempty"`      // hfsc: what it is granted at first
	PeakTime units.Duration `json:"peak_time,omitempty"` // hfsc: how long
	Child    *Qdisc         `json:"child,omitempty"`     // nil: a pfifo

	Pos      parse.Position            `json:"-"`
	FieldPos map[string]parse.Position `json:"-"` // by field name, of the fields in the file
}

// CatchesAll reports whether the class takes the packets of no other.
func (c *Class) CatchesAll() bool { return len(c.DSCP) == 0 && len(c.PCP) == 0 && c.Meta == nil }

// Clock is the clock of slots.
type Clock string

// The clocks of Linux (clock_gettime(2)).
const (
	ClockMonotonic Clock = "monotonic"
	ClockRealtime  Clock = "realtime"
)

// Place is where a queueing discipline is attached.
type Place string

// The places: a port's egress carries what the function sends, a switch's egress what
// it receives.
const (
	AtPort   Place = "port"
	AtSwitch Place = "switch" // by the switch itself, on its side of each port
)

// AtSwitch reports whether a switch attaches the discipline itself; false for nil.
func (q *Qdisc) AtSwitch() bool { return q != nil && q.At == AtSwitch }

// Kinds are the kinds of the discipline, of its child and of its classes' children; nil
// has none.
func (q *Qdisc) Kinds() []string {
	if q == nil {
		return nil
	}
	kinds := append([]string{q.Kind}, q.Child.Kinds()...)
	for i := range q.Classes {
		kinds = append(kinds, q.Classes[i].Child.Kinds()...)
	}
	return kinds
}

// Find is the first qdisc of a kind among a discipline, its child and its classes'
// children; nil if there is none.
func (q *Qdisc) Find(kind string) *Qdisc {
	if q == nil || q.Kind == kind {
		return q
	}
	found := q.Child.Find(kind)
	for i := 0; found == nil && i < len(q.Classes); i++ {
		found = q.Classes[i].Child.Find(kind)
	}
	return found
}

// Function returns the function with that name, or nil.
func (c *Chain) Function(name string) *Function {
	for i := range c.Functions {
		if c.Functions[i].Name == name {
			return &c.Functions[i]
		}
	}
	return nil
}

// Port returns the function's port with that name, or nil.
func (f *Function) Port(name string) *Port {
	for i := range f.Ports {
		if f.Ports[i].Name == name {
			return &f.Ports[i]
		}
	}
	return nil
}
