// SPDX-License-Identifier: Apache-2.0

// Package ovsdpdk joins ports by the link's own Open vSwitch with the
// userspace datapath on DPDK. It reaches applications by vhost-user devices or
// by ports of the port library.
package ovsdpdk

import (
	"context"
	"fmt"

	"github.com/drayage/dray/internal/host"
	"github.com/drayage/dray/internal/host/sidecar"
	"github.com/drayage/dray/internal/host/step"
	"github.com/drayage/dray/internal/link/native"
	"github.com/drayage/dray/internal/link/transport"
	"github.com/drayage/dray/internal/spec/chain"
	"github.com/drayage/dray/internal/spec/inventory"
)

// Names of this package's two transports in a chain file.
const (
	Name     = "ovs-dpdk"
	NameDray = "ovs-dray"
)

// driver joins ports by a switch with one kind of port.
type driver struct {
	name  string
	faces []string
	needs string // a face that one of the ends must have
	rank  int
	path  string // the data path
	note  string
	ports ports
	// machines says that it supports virtual machines.
	machines bool
}

// New returns the driver for vhost-user.
func New() transport.Driver {
	return driver{
		name: Name, faces: []string{string(chain.FaceDPDK), string(chain.FaceNetdev)}, needs: string(chain.FaceDPDK), rank: 8, ports: vhostPorts{}, machines: true,
		path: "none: virtio rings that each application shares with ovs-vswitchd, which copies packets from one to the others",
		note: "it maps the packet memory of all applications, and reaches ports with an interface by packet sockets",
	}
}

// NewDray returns the driver for ports of the port library.
func NewDray() transport.Driver {
	return driver{
		name: NameDray, faces: []string{string(chain.FaceNative), string(chain.FaceDPDK)}, rank: -5, ports: drayPorts{},
		path: "none: descriptor rings that each application shares with ovs-vswitchd, which copies packets from one to the others",
		note: "it shares with each application the memory of a link of their own; never chosen by auto, since applications on native ports may sleep, and it does not",
	}
}

func (d driver) Name() string { return d.name }

func (d driver) Caps() inventory.Caps {
	return inventory.Caps{
		Faces:      d.faces,
		NeedsFace:  d.needs,
		Machines:   d.machines,
		Isolation:  string(chain.IsolationNoPeerMemory),
		MinEnds:    2,
		MaxMTU:     maxMTU,
		Forwards:   true,
		Rank:       d.rank,
		Privileges: "none",
		Processes:  2,
		BusyCPUs:   1, PacketMemory: &packetMemory,
		Copies:     2,
		KernelPath: d.path,
		Note: "ovs-vswitchd polls and keeps one CPU busy, also on an idle link; " + d.note +
			"; two ends are joined by two flows, or as more are by learning addresses",
	}
}

// maxMTU is the longest L3 packet that the switch carried in tests.
const maxMTU = 9216

func (d driver) Probe(ctx context.Context) inventory.Item {
	version, err := probe(ctx)
	if err == nil {
		err = d.ports.probe()
	}
	item := host.ProbeItem(d.name, err)
	item.Version = version
	return item
}

func probe(ctx context.Context) (version string, err error) {
	for _, program := range []string{"ovsdb-tool", dbServer, "ovs-vsctl", "ovs-ofctl"} {
		if _, err := lookup(program); err != nil {
			return "", err
		}
	}
	if _, err := schema(); err != nil {
		return "", err
	}
	program, err := lookupSwitch(ctx)
	if err != nil {
		return "", err
	}
	return program.version, sidecar.Probe()
}

func (d driver) Build(s transport.Spec) (*transport.Build, error) {
	if err := transport.Check(d.name, d.Caps(), s); err != nil {
		return nil, err
	}
	if err := d.ports.check(s); err != nil {
		return nil, fmt.Errorf("link %s cannot use transport %s: %w", s.Link, d.name, err)
	}
	build := transport.NewBuild()
	build.Report.Datapath = "netdev"
	d.ports.prepare(build, d.name, s)
	w := d.newSwitch(s)
	build.Steps = append(build.Steps, w.createInterfaces()...)
	build.Steps = append(build.Steps, w.steps(build.Report)...)
	w.finishInterfaces(build)
	return build, nil
}

// Removers implements transport.Cleaner.
func (driver) Removers() step.Removers { return native.Removers() }

// Revive implements transport.Reviver: the applications' devices accept the
// next switch's connection. The database keeps the switch's configuration,
// except its flows.
func (d driver) Revive(ctx context.Context, s transport.Spec, r *transport.Report) error {
	return d.newSwitch(s).revive(ctx, r)
}
