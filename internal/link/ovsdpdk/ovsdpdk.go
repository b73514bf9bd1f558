// SPDX-License-Identifier: Apache-2.0

// Package ovsdpdk joins ports by the link's own Open vSwitch with the
// userspace datapath on DPDK. It reaches applications by vhost-user devices or
// by ports of the port library.
package ovsdpdk

import (
	"context"

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
	transport.Definition
	ports ports
}

// New returns the driver for vhost-user.
func New() transport.Driver {
	caps := common
	caps.Faces = []string{string(chain.FaceDPDK), string(chain.FaceNetdev)}
	caps.NeedsFace, caps.Machines, caps.Rank = string(chain.FaceDPDK), true, 8
	caps.KernelPath = "none: virtio rings that each application shares with ovs-vswitchd, which copies packets from one to the others"
	caps.Note = note("it maps the packet memory of all applications, and reaches ports with an interface through packet sockets")
	return define(Name, vhostPorts{}, caps)
}

// NewDray returns the driver for ports of the port library.
func NewDray() transport.Driver {
	caps := common
	caps.Faces, caps.Rank = []string{string(chain.FaceNative), string(chain.FaceDPDK)}, -5
	caps.KernelPath = "none: descriptor rings that each application shares with ovs-vswitchd, which copies packets from one to the others"
	caps.PortQueues, caps.OwnShapes = true, true // also the switch's own ports
	caps.Note = note("it shares a link's memory with each application separately; never chosen by auto, because it polls, while applications on native ports may sleep")
	return define(NameDray, drayPorts{}, caps)
}

// common are the capabilities that the switch has with every kind of port.
var common = inventory.Caps{
	Isolation:    string(chain.IsolationNoPeerMemory),
	MinEnds:      2,
	MaxMTU:       maxMTU,
	Forwards:     true,
	Privileges:   "none",
	Processes:    2,
	BusyCPUs:     1,
	PacketMemory: &PacketMemory,
	Copies:       2,
}

func note(own string) string {
	return "ovs-vswitchd polls and keeps one CPU busy, even on an idle link; " + own +
		"; two ends are joined by two flows, or, like more ends, by learning addresses"
}

func define(name string, p ports, caps inventory.Caps) driver {
	d := driver{ports: p}
	d.Definition = transport.Define(name, caps, transport.TryVersion(probe, p.probe), func(s transport.Spec) (*transport.Build, error) {
		return d.build(s)
	})
	return d
}

// maxMTU is the longest L3 packet that the switch carried in tests.
const maxMTU = 9216

func probe(ctx context.Context) (version string, err error) {
	for _, program := range []string{"ovsdb-tool", dbServer, "ovs-vsctl", "ovs-ofctl"} {
		if _, err := lookup(program); err != nil {
			return "", err
		}
	}
	if _, err := Schema(); err != nil {
		return "", err
	}
	program, err := FindSwitch(ctx)
	if err != nil {
		return "", err
	}
	return program.Version, sidecar.Probe()
}

func (d driver) build(s transport.Spec) (*transport.Build, error) {
	if err := d.ports.check(s); err != nil {
		return nil, s.Refuse(d.Name(), err)
	}
	build := transport.NewBuild()
	build.Report.Datapath = "netdev"
	if err := d.ports.prepare(build, d.Name(), s); err != nil {
		return nil, err
	}
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
