// SPDX-License-Identifier: Apache-2.0

package chain

// The words that a chain file may use if it has a choice. Which of them can
// be built, and where, is for the planner to say.
var (
	policies    = []OnInfeasible{Refuse, Warn}
	runtimes    = []RuntimeName{RuntimeRunc, RuntimeProcess, RuntimeDocker, RuntimeVM, RuntimeExternal}
	vmKernels   = []VMKernel{VMKernelGeneric, VMKernelRT}
	vmRuntimes  = []RuntimeName{RuntimeProcess, RuntimeRunc}
	restarts    = []Restart{RestartNever, RestartOnFailure, RestartAlways}
	Faces       = []Face{FaceNetdev, FaceNative, FaceDPDK}
	beyonds     = []Beyond{BeyondDrop, BeyondCopy}
	Forwardings = []Forwarding{ForwardingDirect, ForwardingLearning}
	places      = []Place{AtPort, AtSwitch}
	traffics    = []Traffic{TrafficUDP, TrafficTCP}
	isolations  = []Isolation{IsolationSlice, IsolationLink, IsolationNoPeerMemory, IsolationNoSharedMemory}
)

// The frames that draygen sends, with FCS, in bytes: its smallest, and a jumbo
// frame's packet of 9000 bytes.
const MinFrame, MaxFrame = 64, 9018

// The range of an interface's MTU, in bytes: RFC 791 has every link carry 68,
// and an IP packet's length field ends at 65535.
const (
	minMTU     = 68
	minMTUIPv6 = 1280 // RFC 8200 section 5
	maxMTU     = 65535
	defaultMTU = 1500
)

// What a link between native ports may ask for (dataplane/port/PROTOCOL.md,
// section 3).
const (
	maxMessage      = 4 << 20 // bytes
	maxMessages     = 4096
	defaultMessages = 8
	maxHold         = 65536 // packets
)

// transportMTU is the largest MTU, in bytes, of the transports that carry less
// than any packet, by the name that a chain file uses. What an uplink or a
// driver carries besides is the planner's to find.
var transportMTU = map[string]int{
	"ovs":        9216, // what its userspace datapath was seen to carry
	"sr-iov":     9216, // what drivers of virtual functions take
	"af-xdp":     1500, // one buffer of a DPDK application
	"dpdk-ring":  9216, // what net_mpring says of itself
	"memif":      1500, // net_memif takes frames of 1518 bytes
	"vhost-user": 9216, // what testpmd's buffers are made for
	"ovs-dpdk":   9216, // what its buffers are made for
	"ovs-dray":   9216,
	"vpp":        9000, // what VPP's interfaces are made for
	"vpp-memif":  1500, // as memif
	"vxlan":      maxMTU - VXLANOverhead,
	"ovs-vxlan":  9216, // as ovs

	"ovs-dpdk-vxlan": 9000, // what was seen to pass
}

// Tunnels are the transports between simulated hosts.
var Tunnels = []string{"vxlan", "ovs-vxlan", "ovs-dpdk-vxlan"}

// Transports are the names that a link may give.
var Transports = []string{
	TransportAuto, "loopback", "veth", "bridge", "macvlan", "macvtap", "sr-iov", "af-packet", "ovs",
	"shm", "memif", "dpdk-ring", "af-xdp", "vhost-user", "ovs-dpdk", "ovs-dray", "vpp", "vpp-memif", "vxlan", "ovs-vxlan", "ovs-dpdk-vxlan",
}
