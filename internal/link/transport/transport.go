// SPDX-License-Identifier: Apache-2.0

// Package transport defines what a way to realise a link must do. Each driver
// lives in a folder of its own and passes the suite in transporttest.
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
	// Name is what a chain file calls it.
	Name() string
	// Caps is what it can do and what it costs; constant.
	Caps() inventory.Caps
	// Probe reports whether this host can run it. It leaves nothing behind.
	Probe(ctx context.Context) inventory.Item
	// Build returns the steps that realise the link. Nothing has happened
	// yet when it returns; an error means that the spec cannot be built.
	Build(spec Spec) (*Build, error)
}

// Spec is one link, with every address decided.
type Spec struct {
	Chain string // names what the driver creates
	Link  string
	// Dir is an existing directory for the driver's sockets, namespaces and
	// logs; it is removed after the link.
	Dir string
	// Cgroup holds the link's host processes (a switch, a relay). It exists.
	Cgroup host.Cgroup
	// CPUs are those that the link's processes may use; nil: any.
	CPUs []int
	// Broker is the state directory of the chain's broker, which runs where an
	// end is native.
	Broker string
	// Move says that the broker serves the link already, over another transport:
	// its native ports stay, and the last step takes them to this one.
	Move  bool
	Ends  []End
	MTU   int          // bytes of L3 packet
	Shape *chain.Qdisc // egress qdisc of every port without one of its own; nil: none
	// Forwarding asks a driver with Caps.Forwards; empty: direct between two ends,
	// learning between more.
	Forwarding chain.Forwarding
	// Messages asks for message buffers; nil: none.
	Messages *chain.Messages
	// Hosts are the simulated hosts of the ends, each once; at most one where the
	// link is no tunnel. VNI is the number of a tunnel, the only one of its chain.
	Hosts []Host
	VNI   int
}

// End is a port to be made, or an uplink to be used.
type End struct {
	Function string     // whose port it is; empty for an uplink
	Host     string     // the simulated host that the function is on; empty: none
	Netns    host.Netns // where the port appears; for an uplink, where the host interface lives
	Name     string     // the interface's name: the port's, or the uplink's
	Uplink   bool
	MAC      net.HardwareAddr
	IP       netip.Prefix
	Queues   int

	// Of a port with the native or dpdk face, which has no interface in Netns: its
	// socket on the host, and the uid that may connect to it.
	Face   chain.Face // empty: netdev
	Socket string
	User   int
	Hold   *chain.Hold // nil: no bound
	// Shape is the egress qdisc of this port; nil: that of the spec.
	Shape *chain.Qdisc

	// Runtime is that of the function.
	Runtime chain.RuntimeName
	// HugePages says that the function has some.
	HugePages bool
	// StartsAfter are the functions whose sockets that function waits for before it
	// starts, over the links that are there already, directly or by way of others.
	// None of these may be made to wait for it (Vdev.Awaits).
	StartsAfter []string

	// Of a port with the dpdk face, and of a virtual machine: an existing directory
	// on the host, in which the function alone may make sockets, and which it sees
	// at dpdk.LinksInside/NAME. User is its owner.
	Dir string
}

// Port is how people are told of the end: FUNCTION.PORT, or the uplink's interface.
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

// Machine reports whether the end is an interface of a virtual machine, which a
// transport with Caps.Machines reaches as it does a dpdk end.
func (e End) Machine() bool {
	return e.Runtime == chain.RuntimeVM && (e.Face == "" || e.Face == chain.FaceNetdev)
}

// InMachine reports whether the end is a device of a virtual machine: an interface
// of its kernel, or with the face dpdk of an application in it.
func (e End) InMachine() bool { return e.Machine() || e.Dpdk() && e.Runtime == chain.RuntimeVM }

// Brokered reports whether the end can be a port that libdray opens, on the
// transports that have such ports: in the function's own program, or in the DPDK
// driver net_dray.
func (e End) Brokered() bool { return e.Native() || e.Dpdk() }

// Vdev is how a function's DPDK application attaches to a dpdk end.
type Vdev = dpdk.Vdev

// Cleaner is implemented by a driver whose links leave resources that package
// host does not know how to remove.
type Cleaner interface {
	Removers() step.Removers
}

// AllRemovers removes whatever a link of one of the drivers leaves.
func AllRemovers(drivers ...Driver) step.Removers {
	all := host.Removers()
	for _, d := range drivers {
		if c, ok := d.(Cleaner); ok {
			maps.Copy(all, c.Removers())
		}
	}
	return all
}

// Build is the work of making one link.
type Build struct {
	Steps []step.Step
	// Keeps is what of the steps' resources belongs to the ports: it stays when
	// the link moves to another transport.
	Keeps []step.Resource
	// Report is filled in by the steps as they run.
	Report *Report
}

// Report says what a driver did to the host, as data for the record.
type Report struct {
	Offloads []OffloadChange `json:"offloads"`
	Qdiscs   []QdiscState    `json:"qdiscs"`
	Engine   string          `json:"engine,omitempty"`   // name and version of the switch, e.g. "ovs 3.1.0"
	Datapath string          `json:"datapath,omitempty"` // e.g. "netdev", "system"
	// Vdevs has one for each dpdk end. Build fills it in: it is known before the
	// functions start.
	Vdevs []Vdev `json:"vdevs,omitempty"`
	// Processes are those of the host that the link cannot do without.
	Processes []Process `json:"processes,omitempty"`
}

// Process is a process that carries a link's traffic.
type Process struct {
	Name string         `json:"name"` // e.g. "ovs-vswitchd"
	ID   host.ProcessID `json:"id"`
	Log  string         `json:"log,omitempty"` // a file that grows with what it says
}

// Watch notes a process that was just started, so that its end can be told.
func (b *Build) Watch(name string, pid int) error {
	id, err := host.Identify(pid)
	if err != nil {
		return fmt.Errorf("%s ended at once: %w", name, err)
	}
	b.Report.Processes = append(b.Report.Processes, Process{Name: name, ID: id})
	return nil
}

// OffloadChange is an offload that the driver had to switch.
type OffloadChange struct {
	End     string `json:"end"`     // interface name
	Feature string `json:"feature"` // ethtool name
	To      bool   `json:"to"`
	Reason  string `json:"reason"`
}

// QdiscState is a qdisc as the kernel reports it after it was set.
type QdiscState struct {
	End  string `json:"end"` // FUNCTION.PORT, and "at the switch" if that has set it; of an uplink the interface
	Kind string `json:"kind"`
	Text string `json:"text"` // its parameters as read back
}
