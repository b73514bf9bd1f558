// SPDX-License-Identifier: Apache-2.0

// Package macvlan joins ports by macvlan interfaces in bridge mode, over a host
// interface (an uplink) or over a parent of the link's own.
package macvlan

import (
	"context"
	"fmt"

	"github.com/drayage/dray/internal/chain"
	"github.com/drayage/dray/internal/host"
	"github.com/drayage/dray/internal/inventory"
	"github.com/drayage/dray/internal/step"
	"github.com/drayage/dray/internal/transport"
)

// Name is what a chain file calls this transport.
const Name = "macvlan"

type driver struct{}

// New returns the driver.
func New() transport.Driver { return driver{} }

func (driver) Name() string { return Name }

func (driver) Caps() inventory.Caps {
	return inventory.Caps{
		Faces:      []string{string(chain.FaceNetdev)},
		Isolation:  string(chain.IsolationNoSharedMemory),
		MinEnds:    1, // beside an uplink
		Uplink:     true,
		Shapes:     true,
		MaxMTU:     65535,
		Rank:       20,
		Privileges: "none",
		Copies:     2,
		KernelPath: "socket, macvlan bridge-mode lookup, backlog of the peer's CPU, socket",
		Note:       "the host itself cannot talk to a port through the uplink that carries it",
	}
}

func (driver) Probe(context.Context) inventory.Item {
	return host.ProbeItem(Name, host.ProbeMacvlan())
}

func (d driver) Build(s transport.Spec) (*transport.Build, error) {
	if err := transport.Check(Name, d.Caps(), s); err != nil {
		return nil, err
	}
	build := transport.NewBuild()
	parentNs, parent := s.SwitchNetns(), s.SwitchPort(0).Name
	if uplinks := s.Uplinks(); len(uplinks) == 1 {
		parentNs, parent = uplinks[0].Netns, uplinks[0].Name
		build.Steps = append(build.Steps, s.CheckUplink(Name, uplinks[0]))
	} else {
		build.Steps = append(build.Steps, s.CreateSwitchNetns(Name), createParent(s))
	}
	for i, e := range s.Ports() {
		build.Steps = append(build.Steps, step.Step{
			Name:  s.StepName(Name, fmt.Sprintf("create end %d %s", i+1, e.Name)),
			Makes: []step.Resource{transport.PortResource(e)},
			Do:    func(context.Context) error { return host.CreateMacvlan(s.Iface(e), parentNs, parent) },
		})
	}
	build.Finish(Name, s)
	return build, nil
}

// createParent makes the parent, one end of a veth pair whose other end is left
// alone: a veth, since not every kernel has dummy interfaces. Both ends must be
// up for the parent to have a carrier.
func createParent(s transport.Spec) step.Step {
	a, b := s.SwitchPort(0), s.SwitchPort(1)
	return step.Step{
		Name: s.StepName(Name, "create parent"),
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
