// SPDX-License-Identifier: Apache-2.0

package chain

// The words that a chain file may use where it has a choice. Which of them can
// be built, and where, is for the planner to say.
var (
	policies   = []OnInfeasible{Refuse, Warn}
	runtimes   = []RuntimeName{RuntimeRunc, RuntimeProcess, RuntimeDocker, RuntimeExternal}
	restarts   = []Restart{RestartNever, RestartOnFailure, RestartAlways}
	faces      = []Face{FaceNetdev, FaceNative, FaceDPDK}
	isolations = []Isolation{IsolationSlice, IsolationLink, IsolationNoPeerMemory, IsolationNoSharedMemory}
)

// The range of an interface's MTU, in bytes: RFC 791 has every link carry 68,
// and an IP packet's length field ends at 65535.
const (
	minMTU     = 68
	minMTUIPv6 = 1280 // RFC 8200 section 5
	maxMTU     = 65535
	defaultMTU = 1500
)

// transportMTU is the largest MTU, in bytes, that each transport can carry, by
// the name that a chain file uses. An uplink may carry less; that is the
// planner's to find.
var transportMTU = map[string]int{
	TransportAuto: maxMTU,
	"loopback":    maxMTU,
	"veth":        maxMTU,
	"bridge":      maxMTU,
	"macvlan":     maxMTU,
	"afpacket":    maxMTU,
	"ovs":         maxMTU,
	"shm":         maxMTU,
	"memif":       9000, // VPP's and DPDK's default buffer chain
	"vhost-user":  maxMTU,
	"ovs-dpdk":    9702, // NETDEV_DPDK_MAX_PKT_LEN 9728 less Ethernet header and FCS, rounded as OVS does
	"vxlan":       65485,
}

// transports are the names of transportMTU, in the order in which the
// documentation lists them.
var transports = []string{
	TransportAuto, "loopback", "veth", "bridge", "macvlan", "afpacket", "ovs",
	"shm", "memif", "vhost-user", "ovs-dpdk", "vxlan",
}
