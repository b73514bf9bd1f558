// SPDX-License-Identifier: Apache-2.0

// Package macvlan joins ports by macvlan interfaces in bridge mode, over a
// host interface (an uplink) or the link's own parent. With macvtap, a virtual
// machine uses its port's file as its network device.
package macvlan

import (
	"context"
	"fmt"

	"github.com/drayage/dray/internal/host"
	"github.com/drayage/dray/internal/host/step"
	"github.com/drayage/dray/internal/link/transport"
	"github.com/drayage/dray/internal/spec/inventory"
)

// Names of this package's two transports in a chain file.
const (
	Name    = "macvlan"
	NameTap = "macvtap"
)

// New returns the driver for macvlan.
func New() transport.Driver {
	return define(Name, host.ProbeMacvlan, host.CreateMacvlan, inventory.Caps{
		Rank:       20,
		KernelPath: "socket, macvlan bridge-mode lookup, backlog of the peer's CPU, socket",
	})
}

// NewTap returns the driver for macvtap.
func NewTap() transport.Driver {
	return define(NameTap, host.ProbeMacvtap, host.CreateMacvtap, inventory.Caps{
		Rank:       25,
		KernelPath: "socket, queue, macvlan bridge-mode lookup, backlog of the peer's CPU, socket; a virtual machine's own device takes the place of a socket",
		Note:       "; a virtual machine receives only packets for the port's MAC and for groups; the packets it sends are not checked",
	})
}

// create creates one kind of interface.
type create func(i host.Iface, parentNs host.Netns, parent string) error

func define(name string, probe func() error, port create, caps inventory.Caps) transport.Driver {
	caps.MinEnds, caps.Uplink = 1, true // one port in addition to an uplink
	caps.Note = "the host itself cannot reach a port through that port's own uplink" + caps.Note
	return transport.Define(name, transport.Interfaces(caps), transport.Try(probe), func(s transport.Spec) (*transport.Build, error) {
		return build(name, port, s)
	})
}

func build(driver string, port create, s transport.Spec) (*transport.Build, error) {
	build := transport.NewBuild()
	parentNs, parent := s.SwitchNetns(), s.SwitchPort(0).Name
	if uplinks := s.Uplinks(); len(uplinks) == 1 {
		parentNs, parent = uplinks[0].Netns, uplinks[0].Name
		build.Steps = append(build.Steps, s.CheckUplink(driver, uplinks[0]))
	} else {
		build.Steps = append(build.Steps, s.CreateSwitchNetns(driver), createParent(driver, s))
	}
	for i, e := range s.Ports() {
		build.Steps = append(build.Steps, step.Step{
			Name:  s.StepName(driver, fmt.Sprintf("create end %d %s", i+1, e.Name)),
			Makes: []step.Resource{transport.PortResource(e)},
			Do:    func(context.Context) error { return port(s.Iface(e), parentNs, parent) },
		})
	}
	build.Finish(driver, s)
	return build, nil
}

// createParent creates the parent: one end of a veth pair whose other end is
// unused. It is a veth because not every kernel has dummy interfaces.
func createParent(driver string, s transport.Spec) step.Step {
	return s.CreateSwitchPair(driver, "create parent", func(_, _ host.Iface) error { return nil })
}
