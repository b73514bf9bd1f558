// SPDX-License-Identifier: Apache-2.0

// Package vpp joins DPDK applications by the link's own VPP, over vhost-user
// or memif. It is tested with VPP 26.06.
package vpp

import (
	"context"

	"github.com/drayage/dray/internal/host"
	"github.com/drayage/dray/internal/host/sidecar"
	"github.com/drayage/dray/internal/host/step"
	"github.com/drayage/dray/internal/link/transport"
	"github.com/drayage/dray/internal/link/vhost"
	"github.com/drayage/dray/internal/spec/chain"
	"github.com/drayage/dray/internal/spec/inventory"
)

// Names of this package's two transports in a chain file.
const (
	Name      = "vpp"
	NameMemif = "vpp-memif"
)

// driver joins ports by one kind of interface.
type driver struct {
	transport.Definition
	kind kind
}

// New returns the driver for vhost-user.
func New() transport.Driver {
	return define(Name, vhostUser{}, inventory.Caps{Rank: -3, MaxMTU: maxMTU, Copies: 2, Note: "it maps the packet memory of all applications",
		KernelPath: "none: virtio rings that each application shares with VPP, which copies packets from one to the others"})
}

// NewMemif returns the driver for memif.
func NewMemif() transport.Driver {
	return define(NameMemif, memif{}, inventory.Caps{Rank: -4, MaxMTU: maxMTUMemif, Copies: 4, Note: "it maps the rings and buffers of the applications' devices, and nothing else of them",
		KernelPath: "none: memif rings and buffers that each application shares with VPP and copies to and from; VPP copies packets from one to the others"})
}

func define(name string, k kind, caps inventory.Caps) transport.Driver {
	caps.Faces, caps.Isolation = []string{string(chain.FaceDPDK)}, string(chain.IsolationNoPeerMemory)
	caps.MinEnds, caps.Privileges, caps.Processes, caps.BusyCPUs = 2, "none", 1, 1
	caps.Forwards = true
	caps.Note = "VPP polls and keeps one CPU busy, even on an idle link; " + caps.Note + "; two ends are " +
		"cross-connected, or, like more ends, form a bridge domain, which learns addresses; never chosen by auto, because an application " +
		"must restart after VPP has, which vhost-user and ovs-dpdk spare it"
	return driver{transport.Define(name, caps, transport.TryVersion(probe, sidecar.Probe), func(s transport.Spec) (*transport.Build, error) {
		return build(name, k, s)
	}), k}
}

// Longest L3 packets in bytes: VPP's own limit, and the limit of driver
// net_memif, which accepts frames of 1518 bytes.
const (
	maxMTU      = 9000
	maxMTUMemif = 1500
)

func probe(ctx context.Context) (version string, err error) {
	installed, err := find()
	if err != nil {
		return "", err
	}
	return installed.version(ctx)
}

func build(driver string, kind kind, s transport.Spec) (*transport.Build, error) {
	v := newSwitch(kind, s)
	build := transport.NewBuild(kind.prepare(driver, s)...)
	for i := range s.Ends {
		build.Report.Vdevs = append(build.Report.Vdevs, kind.vdev(s, i))
	}
	name := func(what string) string { return s.StepName(driver, what) }
	build.Steps = append(build.Steps, step.Step{
		Name:  name("write the configuration"),
		Makes: []step.Resource{host.DirResource(v.dir)},
		Do:    func(context.Context) error { return v.writeConfig() },
	})
	build.Steps = append(build.Steps, v.engine(installation{}, nil).Steps(name)...)
	build.Steps = append(build.Steps, step.Step{
		Name: name("start " + program),
		Do:   func(ctx context.Context) error { return v.start(ctx, build.Report) },
	})
	return build, nil
}

// Revive implements transport.Reviver: VPP executes its configuration again.
func (d driver) Revive(ctx context.Context, s transport.Spec, r *transport.Report) error {
	return newSwitch(d.kind, s).start(ctx, r)
}

// kind is a kind of VPP interface to applications.
type kind interface {
	// prepare are the steps that let VPP and the applications connect.
	prepare(driver string, s transport.Spec) []step.Step
	// vdev is the application's device at end i.
	vdev(s transport.Spec, i int) transport.Vdev
	// binds are the host directories visible to VPP.
	binds(s transport.Spec) []sidecar.Bind
	// files are the owners of sockets that VPP must be able to open.
	files(s transport.Spec) []int
	// plugin is the file name of VPP's plugin for it.
	plugin() string
	// create are the commands that create the interface of end i, and its name.
	create(s transport.Spec, i int) (commands []string, name string)
}

type vhostUser struct{}

func (vhostUser) plugin() string                                      { return "vhost_plugin.so" }
func (vhostUser) prepare(driver string, s transport.Spec) []step.Step { return vhost.Admit(driver, s) }
func (vhostUser) binds(s transport.Spec) []sidecar.Bind               { return vhost.Binds(s) }
func (vhostUser) files(s transport.Spec) []int                        { return vhost.Users(s) }

// vdev is the device of an end. The next VPP connects to it too, but starts a ring
// only when the device rings its bell, as vhost-user says. DPDK 22.11 does so when a
// device starts, not when it is connected again.
func (vhostUser) vdev(s transport.Spec, i int) transport.Vdev {
	v := vhost.Vdev(s, i)
	v.EndsWithLink = true
	return v
}
