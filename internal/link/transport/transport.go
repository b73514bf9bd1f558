// SPDX-License-Identifier: Apache-2.0

// Package transport defines the interface of a link's transport. Each driver
// has its own folder and passes the suite in transporttest.
package transport

import (
	"context"
	"fmt"
	"maps"
	"net"
	"net/netip"

	"github.com/drayage/dray/internal/host"
	"github.com/drayage/dray/internal/host/step"
	"github.com/drayage/dray/internal/spec/chain"
	"github.com/drayage/dray/internal/spec/dpdk"
	"github.com/drayage/dray/internal/spec/inventory"
)

// Driver is one transport.
type Driver interface {
	// Name is its name in a chain file.
	Name() string
	// Caps is its capabilities and costs; constant.
	Caps() inventory.Caps
	// Probe reports whether this host can run it. It leaves nothing behind.
	Probe(ctx context.Context) inventory.Item
	// Build returns the steps that create the link, and runs none of them. An
	// error means that the spec cannot be built.
	Build(spec Spec) (*Build, error)
}

// Spec is one link, with every address assigned.
type Spec struct {
	Chain string // names the resources of the driver
	Link  string
	// Dir is an existing directory for the driver's sockets, namespaces and
	// logs; it is removed after the link.
	Dir string
	// Cgroup holds the link's host processes (a switch, a relay). It exists.
	Cgroup host.Cgroup
	// CPUs are the CPUs that the link's processes may use; nil: any.
	CPUs []int
	// Node is the NUMA node of the CPUs of all ends; nil: none, or it does not matter.
	Node *int
	// Broker is the state directory of the chain's broker, which runs if an
	// end is native.
	Broker string
	// Move says that the broker already serves the link, over another transport.
	// Its native ports stay, and the last step moves them to this one.
	Move  bool
	Ends  []End
	MTU   int          // bytes of L3 packet
	Shape *chain.Qdisc // egress qdisc of every port without its own; nil: none
	// Forwarding selects the mode of a driver with Caps.Forwards; empty:
	// direct between two ends, learning between more.
	Forwarding chain.Forwarding
	// Messages asks for message buffers; nil: none.
	Messages *chain.Messages
	// Hosts are the simulated hosts of the ends, without duplicates; at most one if
	// the link is no tunnel. VNI is the tunnel's number, unique in its chain.
	Hosts []Host
	VNI   int
}

// End is a port to create, or an uplink to use.
type End struct {
	Function string     // owner of the port; empty for an uplink
	Host     string     // the function's simulated host; empty: none
	Netns    host.Netns // where the port appears; for an uplink, where the host interface lives
	Name     string     // interface name of the port or the uplink
	Uplink   bool
	MAC      net.HardwareAddr
	IP       netip.Prefix
	Queues   int

	// For a port with the native or dpdk face, without an interface in Netns:
	// its socket on the host, and the uid that may connect.
	Face   chain.Face // empty: netdev
	Socket string
	User   int
	Hold   *chain.Hold // nil: no bound
	// Shape is the egress qdisc of this port; nil: the spec's.
	Shape *chain.Qdisc

	// Runtime is the function's runtime.
	Runtime chain.RuntimeName
	// HugePages says that the function has huge pages.
	HugePages bool
	// StartsAfter are the functions whose sockets must exist before that
	// function starts, directly or indirectly, over existing links. To avoid a
	// cycle, none of them may wait for it (Vdev.Awaits).
	StartsAfter []string

	// For a port with the dpdk face, and for a virtual machine: an existing
	// host directory in which only the function may create sockets. The
	// function sees it at dpdk.LinksInside/NAME. Its owner is User.
	Dir string
}

// Port is the end's name for users: FUNCTION.PORT, or the uplink's interface.
func (e End) Port() string {
	if e.Function == "" {
		return e.Name
	}
	return e.Function + "." + e.Name
}

// Native reports whether the end is a port that libdray opens in the function's
// own program.
func (e End) Native() bool { return e.Face == chain.FaceNative }

// Dpdk reports whether the end is a device of the function's DPDK application.
func (e End) Dpdk() bool { return e.Face == chain.FaceDPDK }

// Machine reports whether the end is a virtual machine's interface. A
// transport with Caps.Machines reaches it like a dpdk end.
func (e End) Machine() bool {
	return e.Runtime == chain.RuntimeVM && (e.Face == "" || e.Face == chain.FaceNetdev)
}

// InMachine reports whether the end is a device of a virtual machine: a kernel
// interface, or a dpdk device of an application in it.
func (e End) InMachine() bool { return e.Machine() || e.Dpdk() && e.Runtime == chain.RuntimeVM }

// NativeInMachine reports whether a program in a virtual machine opens the port by libdray.
func (e End) NativeInMachine() bool { return e.Native() && e.Runtime == chain.RuntimeVM }

// Brokered reports whether libdray can open the end as a port, on transports
// with such ports. libdray is in the function's own program, or in the DPDK
// driver net_dray.
func (e End) Brokered() bool { return e.Native() || e.Dpdk() }

// Vdev is how a function's DPDK application attaches to a dpdk end.
type Vdev = dpdk.Vdev

// Cleaner is implemented by a driver whose links leave resources that package
// host cannot remove.
type Cleaner interface {
	Removers() step.Removers
}

// AllRemovers removes every resource that links of these drivers leave.
func AllRemovers(drivers ...Driver) step.Removers {
	all := host.Removers()
	for _, d := range drivers {
		if c, ok := d.(Cleaner); ok {
			maps.Copy(all, c.Removers())
		}
	}
	return all
}

// Build is the steps and the report of one link.
type Build struct {
	Steps []step.Step
	// Keeps are the steps' resources that belong to the ports: they stay when
	// the link moves to another transport.
	Keeps []step.Resource
	// Report is filled in by the steps as they run.
	Report *Report
}

// Report records a driver's changes to the host, as data for the record.
type Report struct {
	Offloads []OffloadChange `json:"offloads"`
	Qdiscs   []QdiscState    `json:"qdiscs"`
	Engine   string          `json:"engine,omitempty"`   // name and version of the switch, e.g. "ovs 3.1.0"
	Datapath string          `json:"datapath,omitempty"` // e.g. "netdev", "system"
	// Vdevs has one entry per dpdk end. Build fills it in, so it is known
	// before the functions start.
	Vdevs []Vdev `json:"vdevs,omitempty"`
	// Processes are the host processes that the link needs.
	Processes []Process `json:"processes,omitempty"`
}

// Process is a process that carries a link's traffic.
type Process struct {
	Name string         `json:"name"` // e.g. "ovs-vswitchd"
	ID   host.ProcessID `json:"id"`
	Log  string         `json:"log,omitempty"` // output file
	// Polls are the first letters of the names of its threads that poll. If they sleep
	// for long, the process hangs, and is restarted.
	Polls []string `json:"polls,omitempty"`
}

// Watch records a newly started process, so that its exit can be detected.
func (b *Build) Watch(name string, pid int) error {
	id, err := host.Identify(pid)
	if err != nil {
		return fmt.Errorf("%s ended at once: %w", name, err)
	}
	b.Report.Processes = append(b.Report.Processes, Process{Name: name, ID: id})
	return nil
}

// OffloadChange is an offload that the driver had to change.
type OffloadChange struct {
	End     string `json:"end"`     // interface name
	Feature string `json:"feature"` // ethtool name
	To      bool   `json:"to"`
	Reason  string `json:"reason"`
}

// QdiscState is a qdisc as the kernel reports it after it was set.
type QdiscState struct {
	End  string `json:"end"` // FUNCTION.PORT, plus "at the switch" if the switch set it; for an uplink the interface
	Kind string `json:"kind"`
	Text string `json:"text"` // its parameters as read back
}
