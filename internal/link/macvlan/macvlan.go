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
	"github.com/drayage/dray/internal/spec/chain"
	"github.com/drayage/dray/internal/spec/inventory"
)

// Names of this package's two transports in a chain file.
const (
	Name    = "macvlan"
	NameTap = "macvtap"
)

// driver joins ports by one kind of interface.
type driver struct {
	name   string
	rank   int
	create func(i host.Iface, parentNs host.Netns, parent string) error
	probe  func() error
	path   string // the data path
	note   string
}

// New returns the driver for macvlan.
func New() transport.Driver {
	return driver{
		name: Name, rank: 20, create: host.CreateMacvlan, probe: host.ProbeMacvlan,
		path: "socket, macvlan bridge-mode lookup, backlog of the peer's CPU, socket",
	}
}

// NewTap returns the driver for macvtap.
func NewTap() transport.Driver {
	return driver{
		name: NameTap, rank: 25, create: host.CreateMacvtap, probe: host.ProbeMacvtap,
		path: "socket, queue, macvlan bridge-mode lookup, backlog of the peer's CPU, socket; a virtual machine's own device takes the place of a socket",
		note: "; a virtual machine receives what is for the port's MAC and for groups only; what it sends is not checked",
	}
}

func (d driver) Name() string { return d.name }

func (d driver) Caps() inventory.Caps {
	return inventory.Caps{
		Faces:      []string{string(chain.FaceNetdev)},
		Isolation:  string(chain.IsolationNoSharedMemory),
		MinEnds:    1, // in addition to an uplink
		Uplink:     true,
		Shapes:     true,
		MaxMTU:     65535,
		Rank:       d.rank,
		Privileges: "none",
		Copies:     2,
		KernelPath: d.path,
		Note:       "the host itself cannot talk to a port through the uplink that carries it" + d.note,
	}
}

func (d driver) Probe(context.Context) inventory.Item {
	return host.ProbeItem(d.name, d.probe())
}

func (d driver) Build(s transport.Spec) (*transport.Build, error) {
	if err := transport.Check(d.name, d.Caps(), s); err != nil {
		return nil, err
	}
	build := transport.NewBuild()
	parentNs, parent := s.SwitchNetns(), s.SwitchPort(0).Name
	if uplinks := s.Uplinks(); len(uplinks) == 1 {
		parentNs, parent = uplinks[0].Netns, uplinks[0].Name
		build.Steps = append(build.Steps, s.CheckUplink(d.name, uplinks[0]))
	} else {
		build.Steps = append(build.Steps, s.CreateSwitchNetns(d.name), d.createParent(s))
	}
	for i, e := range s.Ports() {
		build.Steps = append(build.Steps, step.Step{
			Name:  s.StepName(d.name, fmt.Sprintf("create end %d %s", i+1, e.Name)),
			Makes: []step.Resource{transport.PortResource(e)},
			Do:    func(context.Context) error { return d.create(s.Iface(e), parentNs, parent) },
		})
	}
	build.Finish(d.name, s)
	return build, nil
}

// createParent creates the parent: one end of a veth pair whose other end is
// unused. It is a veth because not every kernel has dummy interfaces. The
// parent has a carrier only if both ends are up.
func (d driver) createParent(s transport.Spec) step.Step {
	a, b := s.SwitchPort(0), s.SwitchPort(1)
	return step.Step{
		Name: s.StepName(d.name, "create parent"),
		Makes: []step.Resource{
			host.LinkResource(a.Netns, a.Name, a.MAC),
			host.LinkResource(b.Netns, b.Name, b.MAC),
		},
		Do: func(context.Context) error {
			if err := host.CreateVeth(a, b); err != nil {
				return err
			}
			if err := a.Netns.SetUp(a.Name); err != nil {
				return err
			}
			return b.Netns.SetUp(b.Name)
		},
	}
}
