// SPDX-License-Identifier: Apache-2.0

// Package veth joins two ports by a veth pair directly between their
// namespaces: no switch, no process.
package veth

import (
	"context"

	"github.com/drayage/dray/internal/host"
	"github.com/drayage/dray/internal/host/step"
	"github.com/drayage/dray/internal/link/transport"
	"github.com/drayage/dray/internal/spec/chain"
	"github.com/drayage/dray/internal/spec/inventory"
)

// Name is the transport's name in a chain file.
const Name = "veth"

type driver struct{}

// New returns the driver.
func New() transport.Driver { return driver{} }

func (driver) Name() string { return Name }

func (driver) Caps() inventory.Caps {
	return inventory.Caps{
		Faces:      []string{string(chain.FaceNetdev)},
		Isolation:  string(chain.IsolationNoSharedMemory),
		MinEnds:    2,
		MaxEnds:    2,
		Shapes:     true,
		MaxMTU:     65535,
		Rank:       10,
		Privileges: "none",
		Copies:     2,
		KernelPath: "socket, veth transmit, backlog of the peer's CPU, socket",
	}
}

func (driver) Probe(context.Context) inventory.Item {
	return host.ProbeItem(Name, host.ProbeVeth())
}

func (d driver) Build(s transport.Spec) (*transport.Build, error) {
	if err := transport.Check(Name, d.Caps(), s); err != nil {
		return nil, err
	}
	a, b := s.Ends[0], s.Ends[1]
	build := transport.NewBuild(step.Step{
		Name:  s.StepName(Name, "create pair"),
		Makes: []step.Resource{transport.PortResource(a), transport.PortResource(b)},
		Do:    func(context.Context) error { return host.CreateVeth(s.Iface(a), s.Iface(b)) },
	})
	build.Finish(Name, s)
	return build, nil
}
