// SPDX-License-Identifier: Apache-2.0

// Package vepa joins ports by macvlan interfaces whose frames all leave by one uplink and are
// reflected by a bridge there: Virtual Ethernet Port Aggregation (IEEE 802.1Qbg). The reflecting
// switch is a Linux bridge with a port in hairpin mode, at the other end of a veth pair:
//
//	function a                switch's namespace
//	  port (macvlan) ──┐
//	                   ├── p1 (veth) ──── p2 (veth, hairpin) in br0
//	  port (macvlan) ──┘
//	function b
package vepa

import (
	"context"
	"fmt"

	"github.com/drayage/dray/internal/host"
	"github.com/drayage/dray/internal/host/step"
	"github.com/drayage/dray/internal/link/transport"
	"github.com/drayage/dray/internal/spec/inventory"
)

// Name is the transport's name in a chain file.
const Name = "vepa"

const bridgeName = "br0"

// New returns the driver.
func New() transport.Driver {
	return transport.Define(Name, caps, transport.Try(host.ProbeBridge, host.ProbeMacvlan), build)
}

var caps = transport.Interfaces(inventory.Caps{
	MinEnds:    2,
	Rank:       -7, // a macvlan in bridge mode does the same without the detour
	KernelPath: "socket, macvlan, uplink (veth), bridge port in hairpin mode, uplink, backlog of the peer's CPU, macvlan, socket",
	Note:       "the reflecting bridge has a network namespace of its own, without netfilter rules",
})

func build(s transport.Spec) (*transport.Build, error) {
	uplink, reflector := s.SwitchPort(0), s.SwitchPort(1)
	build := transport.NewBuild(s.CreateSwitchNetns(Name), s.CreateBridge(Name, "create bridge", s.SwitchIface(bridgeName)), createUplink(s))
	for i, e := range s.Ports() {
		build.Steps = append(build.Steps, step.Step{
			Name:  s.StepName(Name, fmt.Sprintf("create end %d %s", i+1, e.Name)),
			Makes: []step.Resource{transport.PortResource(e)},
			Do:    func(context.Context) error { return host.CreateVEPA(s.Iface(e), uplink.Netns, uplink.Name) },
		})
	}
	build.Finish(Name, s)
	build.Steps = append(build.Steps, s.AwaitForwardingAt(Name, reflector))
	return build, nil
}

// createUplink is the step that creates the ports' uplink, and the port of the bridge at its other end.
func createUplink(s transport.Spec) step.Step {
	return s.CreateSwitchPair(Name, "create uplink", func(_, reflector host.Iface) error {
		if err := reflector.Netns.SetMaster(reflector.Name, bridgeName); err != nil {
			return err
		}
		return reflector.Netns.SetHairpin(reflector.Name)
	})
}
