// SPDX-License-Identifier: Apache-2.0

// Package ovs joins ports by the link's own Open vSwitch, in its own network
// namespace. It uses the kernel's datapath if the module exists, else the
// userspace (netdev) datapath.
package ovs

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/drayage/dray/internal/host"
	"github.com/drayage/dray/internal/host/step"
	"github.com/drayage/dray/internal/link/transport"
	"github.com/drayage/dray/internal/spec/inventory"
)

// Name is the transport's name in a chain file.
const Name = "ovs"

// The datapaths, by their Open vSwitch names.
const (
	datapathNetdev = "netdev"
	datapathSystem = "system"
)

// New returns the driver.
func New() transport.Driver { return transport.Define(Name, caps, transport.TryVersion(probe), build) }

var caps = transport.Interfaces(inventory.Caps{
	MinEnds:    2,
	OwnShapes:  true,
	MaxMTU:     maxMTU,
	Rank:       40,
	Processes:  2,
	Copies:     4,
	KernelPath: "socket, veth, packet socket, ovs-vswitchd, packet socket, veth, socket; with the kernel datapath: socket, veth, flow table, veth, socket",
	Note:       "the userspace datapath needs the ports' checksum offload off, so TCP runs without segmentation offload; with the kernel datapath there are 2 copies",
})

// maxMTU is the longest L3 packet that the userspace datapath carried in tests.
const maxMTU = 9216

// programs are the programs that a link runs.
var programs = []string{"ovsdb-tool", "ovsdb-server", "ovs-vswitchd", "ovs-vsctl"}

func probe(ctx context.Context) (version string, err error) {
	for _, program := range programs {
		if _, err := lookup(program); err != nil {
			return "", err
		}
	}
	if _, err := schema(); err != nil {
		return "", err
	}
	if version, err = switchVersion(ctx); err != nil {
		return "", err
	}
	if err := host.ProbeVeth(); err != nil {
		return version, err
	}
	if host.HasNetlinkFamily("ovs_datapath") {
		return version, nil
	}
	return version, host.ProbeTap() // the userspace datapath uses a tap for its local port
}

// switchVersion asks the program: the database has the version only after the
// switch has settled.
func switchVersion(ctx context.Context) (string, error) {
	out, err := host.Helper{Program: vswitchd, Args: []string{"--version"}, Package: debianPackage}.Output(ctx)
	if err != nil {
		return "", err
	}
	first, _, _ := strings.Cut(out, "\n")
	return first[strings.LastIndexByte(first, ' ')+1:], nil
}

func build(s transport.Spec) (*transport.Build, error) {
	e := &engine{driver: Name, dir: filepath.Join(s.Dir, "ovs"), ns: s.SwitchNetns(), cgroup: s.Cgroup.Child("ovs-" + s.Link)}
	build := transport.NewBuild(s.CreateSwitchNetns(Name))
	e.watch = build.Watch
	build.Steps = append(build.Steps, e.steps(s)...)
	for i, end := range s.Ports() {
		build.Steps = append(build.Steps, s.CreatePort(Name, i, end))
	}
	build.Steps = append(build.Steps, createBridge(s, e, build.Report), checkPorts(s, e))
	if s.Shape.AtSwitch() {
		build.Steps = append(build.Steps, shapePorts(s, e, build))
	}
	for i, end := range s.Ports() {
		build.Steps = append(build.Steps, finishChecksums(Name, s, build, i, end))
	}
	build.Finish(Name, s)
	build.Steps = append(build.Steps, s.AwaitSwitchPorts(Name))
	return build, nil
}

// bridgeName is the switch's name inside its own database.
const bridgeName = "br0"

func createBridge(s transport.Spec, e *engine, report *transport.Report) step.Step {
	return step.Step{
		Name: s.StepName(Name, "create bridge"),
		Do: func(ctx context.Context) error {
			report.Datapath = datapathNetdev
			if host.HasNetlinkFamily("ovs_datapath") {
				report.Datapath = datapathSystem
			}
			args := []string{
				"add-br", bridgeName, "--",
				"set", "bridge", bridgeName, "datapath_type=" + report.Datapath, "fail_mode=standalone",
				"other_config:disable-in-band=true",
			}
			for i := range s.Ports() {
				args = append(args, "--", "add-port", bridgeName, s.SwitchPort(i).Name)
			}
			if _, err := e.vsctl(ctx, args...); err != nil {
				return err
			}
			version, err := switchVersion(ctx)
			report.Engine = Name + " " + version
			return err
		},
	}
}

// checkPorts checks that the switch forwards on every port: if it cannot open
// a port, ovs-vsctl still succeeds.
func checkPorts(s transport.Spec, e *engine) step.Step {
	return step.Step{
		Name: s.StepName(Name, "check health"),
		Do: func(ctx context.Context) error {
			var names []string
			for i := range s.Ports() {
				names = append(names, s.SwitchPort(i).Name)
			}
			return e.checkPorts(ctx, names)
		},
	}
}

func (e *engine) checkPorts(ctx context.Context, names []string) error {
	var args []string
	for _, port := range names {
		args = append(args, "--", "get", "Interface", port, "ofport")
	}
	out, err := e.vsctl(ctx, args...)
	if err != nil {
		return err
	}
	numbers := strings.Split(out, "\n")
	for i, port := range names {
		if i < len(numbers) && numbers[i] != "" && numbers[i] != "[]" && !strings.HasPrefix(numbers[i], "-") {
			continue
		}
		reason, _ := e.vsctl(ctx, "get", "Interface", port, "error")
		return fmt.Errorf("ovs-vswitchd does not forward on port %s: %s%s", port, reason, e.lastWords(vswitchd))
	}
	return nil
}

// finishChecksums makes the port send complete checksums under the userspace
// datapath, which does not complete them itself: TCP would hang.
func finishChecksums(driver string, s transport.Spec, b *transport.Build, i int, end transport.End) step.Step {
	return step.Step{
		Name: s.StepName(driver, fmt.Sprintf("finish checksums end %d %s", i+1, end.Name)),
		Do: func(context.Context) error {
			if b.Report.Datapath == datapathSystem {
				return nil
			}
			return b.SwitchOffload(end, "tx-checksum", false,
				"the userspace datapath forwards unfinished checksums, so TCP would hang")
		},
	}
}
