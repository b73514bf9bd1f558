// SPDX-License-Identifier: Apache-2.0

// Package vhostuser joins two DPDK applications or virtual machines by a process that
// copies packets between them. It is DPDK's testpmd in io mode, with a vhost-user device
// for each application's virtio-user or machine's virtio-net device.
package vhostuser

import (
	"context"
	"fmt"

	"github.com/drayage/dray/internal/host/sidecar"
	"github.com/drayage/dray/internal/host/step"
	"github.com/drayage/dray/internal/link/transport"
	"github.com/drayage/dray/internal/link/vhost"
	"github.com/drayage/dray/internal/spec/chain"
	"github.com/drayage/dray/internal/spec/inventory"
)

// Name is the transport's name in a chain file.
const Name = "vhost-user"

type driver struct{ transport.Definition }

// New returns the driver.
func New() transport.Driver {
	return driver{transport.Define(Name, caps, transport.TryVersion(probe), build)}
}

var caps = inventory.Caps{
	Faces:      []string{string(chain.FaceDPDK)},
	Machines:   true,
	Isolation:  string(chain.IsolationNoPeerMemory),
	MinEnds:    2,
	MaxEnds:    2,
	MaxMTU:     maxMTU,
	Rank:       7,
	Privileges: "none",
	Processes:  1,
	BusyCPUs:   1, PacketMemory: &packetMemory,
	Copies:     2,
	KernelPath: "none: virtio rings that each application shares with testpmd, which copies packets from one to the other",
	Note:       "testpmd polls and keeps one CPU busy, even on an idle link; it maps the packet memory of both applications",
}

// maxMTU is the longest L3 packet that fits testpmd's buffers.
const maxMTU = 9216

func probe(ctx context.Context) (version string, err error) {
	if _, err := lookup(); err != nil {
		return "", err
	}
	if version, err = testpmdVersion(ctx); err != nil {
		return "", err
	}
	return version, sidecar.Probe()
}

func build(s transport.Spec) (*transport.Build, error) {
	if a, b := vhost.Queues(s.Ends[0]), vhost.Queues(s.Ends[1]); a != b {
		return nil, s.Refuse(Name, fmt.Errorf("its ports have %d and %d queues, but testpmd joins queue to queue; give both the same number", a, b))
	}
	build := transport.NewBuild(vhost.Admit(Name, s)...)
	for i := range s.Ends {
		build.Report.Vdevs = append(build.Report.Vdevs, vhost.Vdev(s, i))
	}
	build.Steps = append(build.Steps, testpmd(s, s.CPUs).Steps(func(what string) string { return s.StepName(Name, what) })...)
	build.Steps = append(build.Steps, step.Step{
		Name: s.StepName(Name, "start "+program),
		Do:   func(ctx context.Context) error { return start(ctx, s, build.Report) },
	})
	return build, nil
}

// Revive implements transport.Reviver: the applications' devices are servers,
// which accept the next testpmd's connection.
func (driver) Revive(ctx context.Context, s transport.Spec, r *transport.Report) error {
	return start(ctx, s, r)
}
