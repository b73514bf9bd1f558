// SPDX-License-Identifier: Apache-2.0

package ovs

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/drayage/dray/internal/host"
	"github.com/drayage/dray/internal/host/step"
	"github.com/drayage/dray/internal/link/ovsvxlan"
	"github.com/drayage/dray/internal/link/transport"
	"github.com/drayage/dray/internal/spec/inventory"
)

// TunnelName is the name of the transport between hosts in a chain file.
const TunnelName = "ovs-vxlan"

// NewTunnel returns the driver that joins ports on different hosts by an Open
// vSwitch on each, with VXLAN between them.
func NewTunnel() transport.Driver {
	return transport.Define(TunnelName, tunnelCaps, transport.TryVersion(probe, host.ProbeMacvlan, probeAppctl, probeTunnel), buildTunnel)
}

var tunnelCaps = transport.Interfaces(inventory.Caps{
	MinEnds:    2,
	Tunnel:     true,
	MaxMTU:     maxMTU,
	Rank:       90,
	Processes:  4, // two per host
	Copies:     6,
	KernelPath: "socket, veth, packet socket, ovs-vswitchd (VXLAN over UDP), packet socket, macvlan, underlay, the same back; with the kernel datapath: socket, veth, flow table, VXLAN, macvlan, underlay, the same back",
	Note:       "between simulated hosts, an Open vSwitch on each; UDP port 4789; the userspace datapath needs the ports' checksum offload off",
})

// probeTunnel tries what the kernel's datapath creates.
func probeTunnel() error {
	if !host.HasNetlinkFamily("ovs_datapath") {
		return nil
	}
	return host.ProbeVxlan()
}

func probeAppctl() error {
	_, err := lookup("ovs-appctl")
	return err
}

func buildTunnel(s transport.Spec) (*transport.Build, error) {
	if err := ovsvxlan.CheckAddresses(s); err != nil {
		return nil, err
	}
	build := transport.NewBuild()
	engines := make([]*engine, len(s.Hosts))
	for i, h := range s.Hosts {
		own := fmt.Sprintf("ovs%d", i+1)
		e := &engine{
			driver: TunnelName, on: h.Name, dir: filepath.Join(s.Dir, own), ns: s.HostNetns(i),
			cgroup: s.Cgroup.Child(own + "-" + s.Link), watch: build.Watch,
		}
		engines[i] = e
		build.Steps = append(build.Steps, s.CheckUnderlay(TunnelName, h), s.CreateHostNetns(TunnelName, i), ovsvxlan.Reach(TunnelName, s, i))
		for _, p := range s.PortsOn(h.Name) {
			build.Steps = append(build.Steps, s.CreatePort(TunnelName, p, s.Ports()[p]))
		}
	}
	for i, e := range engines {
		build.Steps = append(build.Steps, e.steps(s)...)
		build.Steps = append(build.Steps, createBridges(s, e, i, build.Report))
	}
	for i, e := range engines {
		build.Steps = append(build.Steps, checkTunnel(s, e, i, build.Report))
	}
	for i, end := range s.Ports() {
		build.Steps = append(build.Steps, finishChecksums(TunnelName, s, build, i, end))
	}
	build.Finish(TunnelName, s)
	build.Steps = append(build.Steps, s.AwaitSwitchPorts(TunnelName))
	return build, nil
}

// createBridges creates the bridge of the ports, with a tunnel to each other
// host, and the underlay's bridge.
func createBridges(s transport.Spec, e *engine, i int, report *transport.Report) step.Step {
	return step.Step{
		Name: s.StepName(TunnelName, e.named("create bridges")),
		Do: func(ctx context.Context) error {
			report.Datapath = datapathNetdev
			if host.HasNetlinkFamily("ovs_datapath") {
				report.Datapath = datapathSystem
			}
			args := append(ovsvxlan.AddBridge(s, i, report.Datapath),
				"--", "add-br", bridgeName, "--", "set", "bridge", bridgeName, "datapath_type="+report.Datapath, "fail_mode=standalone",
				"other_config:disable-in-band=true")
			ports := s.PortsOn(s.Hosts[i].Name)
			for _, p := range ports {
				args = append(args, "--", "add-port", bridgeName, s.SwitchPort(p).Name)
			}
			tunnels, err := ovsvxlan.AddPorts(s, i, bridgeName, len(ports)+1)
			if err != nil {
				return err
			}
			if _, err := e.vsctl(ctx, append(args, tunnels...)...); err != nil {
				return err
			}
			if err := ovsvxlan.Address(s, i); err != nil {
				return err
			}
			version, err := switchVersion(ctx)
			report.Engine = Name + " " + version
			return err
		},
	}
}

// checkTunnel checks that the switch forwards on every port of the host, and
// has routes to the other hosts.
func checkTunnel(s transport.Spec, e *engine, i int, report *transport.Report) step.Step {
	return step.Step{
		Name: s.StepName(TunnelName, e.named("check health")),
		Do: func(ctx context.Context) error {
			names := append([]string{ovsvxlan.Uplink}, ovsvxlan.Ports(s, i)...)
			for _, p := range s.PortsOn(s.Hosts[i].Name) {
				names = append(names, s.SwitchPort(p).Name)
			}
			if err := e.checkPorts(ctx, names); err != nil {
				return err
			}
			if report.Datapath == datapathSystem {
				return nil // the kernel resolves the neighbour and queues the packet until then
			}
			return ovsvxlan.FindHosts(ctx, s, i, e.appctl)
		},
	}
}
