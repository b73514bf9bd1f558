// SPDX-License-Identifier: Apache-2.0

package chain

// The words for the choices in a chain file. The planner decides which of them can be
// built, and where.
var (
	policies    = []OnInfeasible{Refuse, Warn}
	runtimes    = []RuntimeName{RuntimeRunc, RuntimeProcess, RuntimeDocker, RuntimeVM, RuntimeExternal}
	VMKernels   = []VMKernel{VMKernelGeneric, VMKernelLowLatency, VMKernelRT}
	sctpModes   = []SCTP{SCTPIP, SCTPUDP}
	vmRuntimes  = []RuntimeName{RuntimeProcess, RuntimeRunc}
	restarts    = []Restart{RestartNever, RestartOnFailure, RestartAlways}
	Faces       = []Face{FaceNetdev, FaceNative, FaceDPDK}
	beyonds     = []Beyond{BeyondDrop, BeyondCopy}
	Forwardings = []Forwarding{ForwardingDirect, ForwardingLearning}
	places      = []Place{AtPort, AtSwitch}
	clocks      = []Clock{ClockMonotonic, ClockRealtime}
	traffics    = []Traffic{TrafficUDP, TrafficTCP}
	isolations  = []Isolation{IsolationSlice, IsolationLink, IsolationNoPeerMemory, IsolationNoSharedMemory}
)

// The lengths of draygen's frames, with FCS, in bytes: the smallest, and a jumbo frame
// with a 9000-byte packet.
const MinFrame, MaxFrame = 64, 9018

// The range of an interface's MTU, in bytes: RFC 791 requires 68 of every link, and an
// IP packet's length field ends at 65535.
const (
	minMTU     = 68
	minMTUIPv6 = 1280 // RFC 8200 section 5
	maxMTU     = 65535
	defaultMTU = 1500
)

// Limits of a link between native ports (dataplane/port/PROTOCOL.md, section 3).
const (
	maxMessage      = 4 << 20 // bytes
	maxMessages     = 4096
	defaultMessages = 8
	maxHold         = 65536 // packets
)

// transportMTU is the largest MTU, in bytes, of transports with a limit below the IP
// maximum, by name in the chain file. The planner finds the limits of uplinks and
// drivers.
var transportMTU = map[string]int{
	"ovs":        9216, // carried by its userspace datapath in trials
	"sr-iov":     9216, // taken by VF drivers
	"af-xdp":     1500, // one buffer of a DPDK application
	"dpdk-ring":  9216, // reported by net_mpring
	"memif":      9216, // what our driver file lets net_memif take
	"vhost-user": 9216, // the size of testpmd's buffers
	"ovs-dpdk":   9216, // the size of its buffers
	"ovs-dray":   9216,
	"vpp":        9000, // the size of VPP's interfaces
	"vpp-memif":  1500, // net_memif alone takes frames of 1518 bytes
	"vxlan":      maxMTU - VXLANOverhead,
	"ovs-vxlan":  9216, // as ovs

	"ovs-dpdk-vxlan": 9000, // passed in trials
}

// Tunnels are the transports between simulated hosts.
var Tunnels = []string{"vxlan", "ovs-vxlan", "ovs-dpdk-vxlan"}

// Transports are the names for a link's transport.
var Transports = []string{
	TransportAuto, "loopback", "veth", "bridge", "macvlan", "macvtap", "vepa", "sr-iov", "af-packet", "ovs",
	"shm", "memif", "dpdk-ring", "af-xdp", "vhost-user", "ovs-dpdk", "ovs-dray", "vpp", "vpp-memif", "vxlan", "ovs-vxlan", "ovs-dpdk-vxlan",
}
