// SPDX-License-Identifier: Apache-2.0

// Package bridge joins ports by a Linux bridge in its own namespace. In the
// host's, br_netfilter and a FORWARD policy of DROP would block the traffic.
package bridge

import (
	"github.com/drayage/dray/internal/host"
	"github.com/drayage/dray/internal/link/transport"
	"github.com/drayage/dray/internal/spec/inventory"
)

// Name is the transport's name in a chain file.
const Name = "bridge"

const bridgeName = "br0"

// New returns the driver.
func New() transport.Driver {
	return transport.Define(Name, caps, transport.Try(host.ProbeBridge), build)
}

var caps = transport.Interfaces(inventory.Caps{
	MinEnds:    2,
	MaxEnds:    transport.BridgePorts,
	Rank:       30,
	KernelPath: "socket, veth, bridge forwarding, veth, socket",
	Note:       "the bridge has a network namespace of its own, without netfilter rules",
})

func build(s transport.Spec) (*transport.Build, error) {
	build := transport.NewBuild(s.CreateSwitchNetns(Name), s.CreateBridge(Name, "create bridge", s.SwitchIface(bridgeName)))
	for i, e := range s.Ports() {
		build.Steps = append(build.Steps, s.CreatePort(Name, i, e), s.Attach(Name, i, bridgeName))
	}
	build.Finish(Name, s)
	build.Steps = append(build.Steps, s.AwaitForwarding(Name))
	return build, nil
}
