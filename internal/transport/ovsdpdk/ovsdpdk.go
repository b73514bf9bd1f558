// SPDX-License-Identifier: Apache-2.0

// Package ovsdpdk joins ports by an Open vSwitch of the link's own with its
// datapath in user space on DPDK: it reaches each DPDK application by a
// vhost-user device, and functions with network interfaces by packet sockets.
package ovsdpdk

import (
	"context"

	"github.com/drayage/dray/internal/chain"
	"github.com/drayage/dray/internal/engine"
	"github.com/drayage/dray/internal/host"
	"github.com/drayage/dray/internal/inventory"
	"github.com/drayage/dray/internal/transport"
	"github.com/drayage/dray/internal/transport/vhost"
)

// Name is what a chain file calls this transport.
const Name = "ovs-dpdk"

type driver struct{}

// New returns the driver.
func New() transport.Driver { return driver{} }

func (driver) Name() string { return Name }

func (driver) Caps() inventory.Caps {
	return inventory.Caps{
		Faces:      []string{string(chain.FaceDPDK)},
		Isolation:  string(chain.IsolationNoPeerMemory),
		MinEnds:    2,
		MaxMTU:     maxMTU,
		Rank:       8,
		Privileges: "none",
		Processes:  2,
		BusyCPUs:   1,
		Copies:     2,
		KernelPath: "none: virtio rings that each application shares with ovs-vswitchd, which copies packets from one to the others",
		Note: "ovs-vswitchd polls and keeps one CPU busy, also on an idle link; it maps the packet memory of all applications; " +
			"two ends are joined by two flows, more by learning addresses",
	}
}

// maxMTU is the longest L3 packet that the switch was seen to carry.
const maxMTU = 9216

func (driver) Probe(ctx context.Context) inventory.Item {
	version, err := probe(ctx)
	item := host.ProbeItem(Name, err)
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
	return program.version, engine.Probe()
}

func (d driver) Build(s transport.Spec) (*transport.Build, error) {
	if err := transport.Check(Name, d.Caps(), s); err != nil {
		return nil, err
	}
	sw := newSwitch(s)
	build := transport.NewBuild(vhost.Admit(Name, s)...)
	build.Report.Datapath = "netdev"
	for _, e := range s.Ends {
		build.Report.Vdevs = append(build.Report.Vdevs, vhost.Vdev(e))
	}
	build.Steps = append(build.Steps, sw.steps(build.Report)...)
	return build, nil
}

// Revive implements transport.Reviver: the applications' devices are servers,
// which take the next switch's connection, and the database keeps what the switch
// is to be, but for its flows.
func (driver) Revive(ctx context.Context, s transport.Spec, r *transport.Report) error {
	return newSwitch(s).revive(ctx, r)
}
