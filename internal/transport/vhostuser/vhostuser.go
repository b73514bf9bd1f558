// SPDX-License-Identifier: Apache-2.0

// Package vhostuser joins two DPDK applications by a process that copies packets
// between them: DPDK's testpmd in its io mode, with a vhost-user device for each
// application's virtio-user device.
package vhostuser

import (
	"context"
	"fmt"
	"slices"

	"github.com/drayage/dray/internal/chain"
	"github.com/drayage/dray/internal/dpdk"
	"github.com/drayage/dray/internal/engine"
	"github.com/drayage/dray/internal/host"
	"github.com/drayage/dray/internal/inventory"
	"github.com/drayage/dray/internal/step"
	"github.com/drayage/dray/internal/transport"
)

// Name is what a chain file calls this transport.
const Name = "vhost-user"

type driver struct{}

// New returns the driver.
func New() transport.Driver { return driver{} }

func (driver) Name() string { return Name }

func (driver) Caps() inventory.Caps {
	return inventory.Caps{
		Faces:      []string{string(chain.FaceDPDK)},
		Isolation:  string(chain.IsolationNoPeerMemory),
		MinEnds:    2,
		MaxEnds:    2,
		MaxMTU:     maxMTU,
		Rank:       7,
		Privileges: "none",
		Processes:  1,
		BusyCPUs:   1,
		Copies:     2,
		KernelPath: "none: virtio rings that each application shares with testpmd, which copies packets from one to the other",
		Note:       "testpmd polls and keeps one CPU busy, also on an idle link; it maps the packet memory of both applications",
	}
}

// maxMTU is the longest L3 packet that testpmd's buffers are made for.
const maxMTU = 9216

func (driver) Probe(ctx context.Context) inventory.Item {
	version, err := probe(ctx)
	item := host.ProbeItem(Name, err)
	item.Version = version
	return item
}

func probe(ctx context.Context) (version string, err error) {
	if _, err := lookup(); err != nil {
		return "", err
	}
	if version, err = testpmdVersion(ctx); err != nil {
		return "", err
	}
	return version, engine.Probe()
}

func (d driver) Build(s transport.Spec) (*transport.Build, error) {
	if err := transport.Check(Name, d.Caps(), s); err != nil {
		return nil, err
	}
	if a, b := queues(s.Ends[0]), queues(s.Ends[1]); a != b {
		return nil, fmt.Errorf("link %s cannot use transport %s: its ports have %d and %d queues, and testpmd joins one to one; give both the same", s.Link, Name, a, b)
	}
	build := transport.NewBuild()
	for i, e := range s.Ends {
		build.Report.Vdevs = append(build.Report.Vdevs, vdev(e))
		build.Steps = append(build.Steps, step.Step{
			Name: s.StepName(Name, fmt.Sprintf("admit the switch to end %d %s", i+1, e.Name)),
			Do:   func(context.Context) error { return engine.Admit(e.Dir, owner(s)) },
		})
	}
	build.Steps = append(build.Steps, testpmd(s, s.CPUs).Steps(func(what string) string { return s.StepName(Name, what) })...)
	build.Steps = append(build.Steps, step.Step{
		Name: s.StepName(Name, "start "+program),
		Do:   func(ctx context.Context) error { return start(ctx, s, build.Report) },
	})
	return build, nil
}

// Revive implements transport.Reviver: the applications' devices are servers,
// which take the next testpmd's connection.
func (driver) Revive(ctx context.Context, s transport.Spec, r *transport.Report) error {
	return start(ctx, s, r)
}

// socketName is the socket that the application makes in its end's directory.
const socketName = "vhost.sock"

// ringSlots is the length of a virtio ring: long enough for what comes while the
// two ends of a link take turns on one CPU.
const ringSlots = 1024

// vdev is the application's device: it listens, so that it outlives testpmd.
func vdev(e transport.End) transport.Vdev {
	return transport.Vdev{
		Function: e.Function, Port: e.Name, Driver: dpdk.NetVirtioUser,
		Options: fmt.Sprintf("path={dir}/%s,server=1,queues=%d,queue_size=%d,mac=%s", socketName, queues(e), ringSlots, e.MAC),
		Dir:     e.Dir, SingleFileSegments: true,
	}
}

func queues(e transport.End) int { return max(1, e.Queues) }

func owner(s transport.Spec) string { return s.Chain + "/" + s.Link }

// users are the owners of the applications' sockets.
func users(s transport.Spec) []int {
	var list []int
	for _, e := range s.Ends {
		if !slices.Contains(list, e.User) {
			list = append(list, e.User)
		}
	}
	return list
}
