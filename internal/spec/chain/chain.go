// SPDX-License-Identifier: Apache-2.0

// Package chain holds the nouns of Drayage: a Chain of Functions, their Ports,
// the Links between them and what each Link requires. It parses and validates
// chain files; it knows nothing of hosts, drivers or clocks.
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
	Hosts      *Hosts     `json:"hosts,omitempty"` // nil: all is on one host
	Functions  []Function `json:"functions"`
	Links      []Link     `json:"links"`

	// File is the name that errors print; it is empty for a chain made in code.
	File string `json:"-"`
}

// Policy says what happens when a requirement cannot be met, and how far a
// function may be trusted.
type Policy struct {
	OnInfeasible OnInfeasible `json:"on_infeasible"`
	// Privileged permits transports that need privileges of their functions, such
	// as a capability of the host's, and gives these to them. No function is ever
	// started with all of them.
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

// Function is a container or process that handles packets (a VNF or CNF).
type Function struct {
	Name      string            `json:"name"`
	Runtime   RuntimeName       `json:"runtime"`
	Host      string            `json:"host,omitempty"`   // one of the chain's Hosts; empty if it has none
	Image     string            `json:"image,omitempty"`  // docker image reference
	Rootfs    string            `json:"rootfs,omitempty"` // absolute path; empty: the host's root, read-only
	Command   []string          `json:"command,omitempty"`
	Env       map[string]string `json:"env,omitempty"`
	CPUs      CPURequest        `json:"cpus,omitempty"`
	Memory    units.Bytes       `json:"memory,omitempty"`    // 0: no limit
	Pids      int               `json:"pids,omitempty"`      // 0: the runtime's default of 512
	HugePages []HugePages       `json:"hugepages,omitempty"` // one entry a page size, ascending
	Restart   Restart           `json:"restart"`
	External  *External         `json:"external,omitempty"` // exactly for RuntimeExternal
	VM        *VM               `json:"vm,omitempty"`       // only for RuntimeVM; nil: the defaults
	Ports     []Port            `json:"ports"`

	Pos      parse.Position            `json:"-"`
	FieldPos map[string]parse.Position `json:"-"` // by field name, of the fields that the file gives
}

// CPURequest asks for CPUs: a number that the planner chooses and pins, or an
// explicit set. The zero value asks for nothing: the function may use any CPU.
type CPURequest struct {
	Count int   `json:"count,omitempty"`
	Set   []int `json:"set,omitempty"` // ascending, without duplicates; Count is then 0
}

// Number is how many CPUs are asked for; 0 means unpinned.
func (c CPURequest) Number() int {
	if len(c.Set) > 0 {
		return len(c.Set)
	}
	return c.Count
}

// HugePages is the most hugetlb memory of one page size that a function may use.
type HugePages struct {
	Size  units.Bytes `json:"size"`  // page size: 2Mi or 1Gi
	Limit units.Bytes `json:"limit"` // a multiple of Size
}

// Restart says when a function's command is started again.
type Restart string

const (
	RestartNever     Restart = "never" // the default
	RestartOnFailure Restart = "on-failure"
	RestartAlways    Restart = "always"
)

// External names a container or process that somebody else started. Exactly
// one field is set.
type External struct {
	PID       int    `json:"pid,omitempty"`
	Container string `json:"container,omitempty"` // docker container name or id
	Netns     string `json:"netns,omitempty"`     // absolute path of a network namespace file
}

// VM says what machine a function with runtime vm gets.
type VM struct {
	Kernel VMKernel `json:"kernel"`
	// HugePages takes the machine's memory from the host's pages of 2 MiB.
	HugePages bool `json:"hugepages"`
	// NoHzFull stops the kernel's tick on every virtual CPU but the first while one
	// thread alone runs there.
	NoHzFull bool `json:"nohz_full"`
	// Runtime is what runs the command in the machine: RuntimeProcess or RuntimeRunc.
	Runtime RuntimeName `json:"runtime"`
}

// What a machine has besides what its function may use, and what it has if
// that is not limited.
const (
	vmKernelMemory  = 256 << 20
	vmDefaultMemory = 512 << 20
)

// VMPage is the page size of a machine's memory if that is of huge pages, and of
// those that the machine itself keeps for DPDK applications.
const VMPage units.Bytes = 2 << 20

// vmPages are the bytes of huge pages that a machine with dpdk ports has for its
// applications if the function names none: testpmd takes 380 MB unless told.
const vmPages units.Bytes = 512 << 20

// OwnPages are the bytes of huge pages, of VMPage each, that the machine of a
// function with runtime vm keeps for DPDK applications. They are a part of
// MachineMemory; 0 if no port has the face dpdk.
func (f Function) OwnPages() units.Bytes {
	if f.Runtime != RuntimeVM || !f.HasPort(FaceDPDK) {
		return 0
	}
	if len(f.HugePages) == 0 {
		return vmPages
	}
	return f.HugePages[0].Limit
}

// HostPages are the huge pages of the host's that the function may use. Those of a
// machine's function are a part of the machine's memory instead, see OwnPages.
func (f Function) HostPages() []HugePages {
	if f.Runtime == RuntimeVM {
		return nil
	}
	return f.HugePages
}

// HasPort reports whether some port of the function has the face.
func (f Function) HasPort(face Face) bool {
	return slices.ContainsFunc(f.Ports, func(p Port) bool { return p.Face == face })
}

// MachineMemory is the memory of the machine of a function with runtime vm, whole
// VMPages; 0 for other runtimes.
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
	VMKernelGeneric VMKernel = "generic" // the default: linux-image-amd64
	VMKernelRT      VMKernel = "rt"      // PREEMPT_RT: linux-image-rt-amd64
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
	FieldPos map[string]parse.Position `json:"-"` // by field name, of the fields that the file gives
}

// Hold bounds what a native port may keep of its peer's buffers.
type Hold struct {
	Packets int    `json:"packets"` // per queue
	Beyond  Beyond `json:"beyond"`
}

// Beyond is what becomes of packets that come to a port which holds all it may.
type Beyond string

const (
	BeyondDrop Beyond = "drop" // the default: they are returned at once, and counted
	BeyondCopy Beyond = "copy" // they are copied to the receiver's own memory
)

// Isolation is what the two ends of a link may share with each other.
type Isolation string

const (
	IsolationSlice          Isolation = "slice"
	IsolationLink           Isolation = "link" // the default
	IsolationNoPeerMemory   Isolation = "no-peer-memory"
	IsolationNoSharedMemory Isolation = "no-shared-memory"
)

// TransportAuto lets the planner choose.
const TransportAuto = "auto"

// Forwarding is how a switch in user space decides where a packet goes.
type Forwarding string

const (
	ForwardingDirect   Forwarding = "direct"   // from either of two ends to the other, whatever its addresses
	ForwardingLearning Forwarding = "learning" // by the addresses that it has seen at each end
)

// Traffic is the protocol that a bitrate is measured with.
type Traffic string

const (
	TrafficUDP Traffic = "udp" // the default: payload of datagrams, as user planes carry it
	TrafficTCP Traffic = "tcp" // what one stream delivers
)

// Link joins two or more ends and carries the requirement.
type Link struct {
	Name      string    `json:"name"`
	Ends      []End     `json:"ends"`
	Transport string    `json:"transport"` // TransportAuto or a driver's name
	Isolation Isolation `json:"isolation"`
	// Forwarding asks a transport that has the choice; empty: direct between two
	// ends, learning between more.
	Forwarding Forwarding `json:"forwarding,omitempty"`
	// Traffic is what bitrates are measured with. Delay and loss are always
	// those of UDP packets.
	Traffic Traffic `json:"traffic"`
	// Frame is the length of the frames of UDP traffic, in bytes with FCS; 0: frames that fill the MTU.
	Frame int `json:"frame,omitempty"`
	// Load is the traffic that runs while latency is measured, in one
	// direction. HasLoad false: 10 % of Requires.MinBitrate.
	Load     units.Bitrate `json:"load"`
	HasLoad  bool          `json:"-"`
	Requires Requires      `json:"requires"`
	QoS      *Qdisc        `json:"qos,omitempty"` // attached to the egress of every port on the link that has none of its own
	// Messages asks for buffers of a second size; nil: packets only.
	Messages *Messages `json:"messages,omitempty"`

	Pos      parse.Position            `json:"-"`
	FieldPos map[string]parse.Position `json:"-"` // by field name, of the fields that the file gives
}

// End is a function's port or an uplink: a host interface. Exactly one of
// (Function, Port) and Uplink is set.
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

// Messages are what native ports pass beside packets: contiguous, and published
// whole.
type Messages struct {
	Size  units.Bytes `json:"size"`  // of the largest
	Count int         `json:"count"` // under way per queue and direction
}

// Requires is what a link must do. A zero field requires nothing. The names
// follow ETSI GS NFV-SOL 001 (tosca.datatypes.nfv.Qos, VirtualLinkBitrateRequirements).
type Requires struct {
	Latency    units.Duration   `json:"latency,omitempty"`                // one-way, at Percentile
	Percentile units.Percentile `json:"percentile,omitempty"`             // default 99 if latency or PDV is required
	PDV        units.Duration   `json:"packet_delay_variation,omitempty"` // D(i)−Dmin at Percentile, RFC 5481
	LossRatio  *units.Ratio     `json:"packet_loss_ratio,omitempty"`      // nil: none required; 0 cannot be proven and is refused
	MinBitrate units.Bitrate    `json:"min_bitrate,omitempty"`            // each direction
	MaxBitrate units.Bitrate    `json:"max_bitrate,omitempty"`            // each direction; enforced by shaping, then measured
	PacketRate units.PacketRate `json:"packet_rate,omitempty"`            // each direction, 64 B frames
	MTU        int              `json:"mtu,omitempty"`                    // bytes of L3 packet that must pass unfragmented

	Pos map[string]parse.Position `json:"-"` // by field name in the file
}

// Qdisc is a queueing discipline and its parameters, in tc's own terms.
type Qdisc struct {
	Kind    string         `json:"qdisc"`             // pfifo, bfifo, tbf, htb, hfsc, sfq, codel, fq_codel, netem
	Rate    units.Bitrate  `json:"rate,omitempty"`    // tbf, htb, hfsc, netem
	Ceil    units.Bitrate  `json:"ceil,omitempty"`    // htb
	Burst   units.Bytes    `json:"burst,omitempty"`   // tbf, htb
	Latency units.Duration `json:"latency,omitempty"` // tbf: the longest a packet may queue; netem: the delay added
	Limit   int            `json:"limit,omitempty"`   // pfifo, sfq, codel, fq_codel, netem: packets; bfifo: bytes
	Child   *Qdisc         `json:"child,omitempty"`   // of tbf, htb and hfsc: what queues below the shaper; nil: a FIFO
	At      Place          `json:"at,omitempty"`      // where it is set; empty: at the port

	Pos      parse.Position            `json:"-"`
	FieldPos map[string]parse.Position `json:"-"` // by field name, of the fields that the file gives
}

// Place is where a queueing discipline is set.
type Place string

// The places: a port's egress is what the function sends, a switch's what the
// function receives.
const (
	AtPort   Place = "port"
	AtSwitch Place = "switch" // by the switch itself, on its side of each port
)

// AtSwitch reports whether a switch sets the discipline itself; nil is none.
func (q *Qdisc) AtSwitch() bool { return q != nil && q.At == AtSwitch }

// Kinds are the kinds of the discipline and of what queues below it; nil has none.
func (q *Qdisc) Kinds() []string {
	if q == nil {
		return nil
	}
	return append([]string{q.Kind}, q.Child.Kinds()...)
}

// Function returns the function of that name, or nil.
func (c *Chain) Function(name string) *Function {
	for i := range c.Functions {
		if c.Functions[i].Name == name {
			return &c.Functions[i]
		}
	}
	return nil
}

// Port returns the function's port of that name, or nil.
func (f *Function) Port(name string) *Port {
	for i := range f.Ports {
		if f.Ports[i].Name == name {
			return &f.Ports[i]
		}
	}
	return nil
}
