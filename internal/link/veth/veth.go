// SPDX-License-Identifier: Apache-2.0

// Package veth joins two ports by a veth pair directly between their
// namespaces: no switch, no process.
package veth

import (
	"context"

	"github.com/drayage/dray/internal/host"
	"github.com/drayage/dray/internal/host/step"
	"github.com/drayage/dray/internal/link/transport"
	"github.com/drayage/dray/internal/spec/inventory"
)

// Name is the transport's name in a chain file.
const Name = "veth"

// New returns the driver.
func New() transport.Driver {
	return transport.Define(Name, caps, transport.Try(host.ProbeVeth), build)
}

var caps = transport.Interfaces(inventory.Caps{
	MinEnds:    2,
	MaxEnds:    2,
	Rank:       10,
	KernelPath: "socket, veth transmit, backlog of the peer's CPU, socket",
})

func build(s transport.Spec) (*transport.Build, error) {
	a, b := s.Ends[0], s.Ends[1]
	build := transport.NewBuild(step.Step{
		Name:  s.StepName(Name, "create pair"),
		Makes: []step.Resource{transport.PortResource(a), transport.PortResource(b)},
		Do:    func(context.Context) error { return host.CreateVeth(s.Iface(a), s.Iface(b)) },
	})
	build.Finish(Name, s)
	return build, nil
}
