// SPDX-License-Identifier: Apache-2.0

package ovs

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/drayage/dray/internal/chain"
	"github.com/drayage/dray/internal/host"
	"github.com/drayage/dray/internal/inventory"
	"github.com/drayage/dray/internal/step"
	"github.com/drayage/dray/internal/transport"
)

// TunnelName is what a chain file calls the transport between hosts.
const TunnelName = "ovs-vxlan"

const (
	// tunnelPort is IANA's for VXLAN (RFC 7348), and Open vSwitch's default. The
	// kernel's tunnels of transport vxlan have another, so that both kinds may end on
	// one host.
	tunnelPort = 4789
	// underBridge has the end of the underlay and the tunnel's address: with the
	// userspace datapath the switch itself sends the tunnel's packets, and does so on
	// a bridge of its own only.
	underBridge = "br-under"
	underName   = "under0" // that end
	// longestMemory is for how many seconds a switch may remember a neighbour at most.
	longestMemory = "3600"
)

type tunnel struct{}

// NewTunnel returns the driver that joins ports on different hosts by an Open
// vSwitch on each, with VXLAN between them.
func NewTunnel() transport.Driver { return tunnel{} }

func (tunnel) Name() string { return TunnelName }

func (tunnel) Caps() inventory.Caps {
	return inventory.Caps{
		Faces:      []string{string(chain.FaceNetdev)},
		Isolation:  string(chain.IsolationNoSharedMemory),
		MinEnds:    2,
		Tunnel:     true,
		Shapes:     true,
		MaxMTU:     maxMTU,
		Rank:       90,
		Privileges: "none",
		Processes:  4, // two a host
		Copies:     6,
		KernelPath: "socket, veth, packet socket, ovs-vswitchd (VXLAN over UDP), packet socket, macvlan, underlay, the same back; with the kernel datapath: socket, veth, flow table, VXLAN, macvlan, underlay, the same back",
		Note:       "between simulated hosts, an Open vSwitch on each; UDP port 4789; the userspace datapath needs the ports' checksum offload off",
	}
}

func (tunnel) Probe(ctx context.Context) inventory.Item {
	version, err := probe(ctx)
	for _, try := range []func() error{host.ProbeMacvlan, probeAppctl} {
		if err == nil {
			err = try()
		}
	}
	if err == nil && host.HasNetlinkFamily("ovs_datapath") {
		err = host.ProbeVxlan() // the kernel's datapath makes one
	}
	item := host.ProbeItem(TunnelName, err)
	item.Version = version
	return item
}

func probeAppctl() error {
	_, err := lookup("ovs-appctl")
	return err
}

func (d tunnel) Build(s transport.Spec) (*transport.Build, error) {
	if err := transport.Check(TunnelName, d.Caps(), s); err != nil {
		return nil, err
	}
	build := transport.NewBuild()
	engines := make([]*engine, len(s.Hosts))
	for i, h := range s.Hosts {
		if _, err := h.TunnelAddr(s.VNI); err != nil {
			return nil, fmt.Errorf("link %s: %w", s.Link, err)
		}
		own := fmt.Sprintf("ovs%d", i+1)
		e := &engine{
			driver: TunnelName, on: h.Name, dir: filepath.Join(s.Dir, own), ns: s.HostNetns(i),
			cgroup: s.Cgroup.Child(own + "-" + s.Link), watch: build.Watch,
		}
		if err := e.checkPaths(); err != nil {
			return nil, fmt.Errorf("link %s cannot use transport %s: %w", s.Link, TunnelName, err)
		}
		engines[i] = e
		build.Steps = append(build.Steps, s.CheckUnderlay(TunnelName, h), s.CreateHostNetns(TunnelName, i), reachUnderlay(s, i))
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

// under is the tunnel's end of the underlay on host i. Its address is the tunnel's
// own: while a link moves there are two on one line.
func under(s transport.Spec, i int) host.Iface {
	mac := s.SwitchMAC(fmt.Sprintf("%s of tunnel %d on %s", underName, s.VNI, s.Hosts[i].Name))
	return host.Iface{Netns: s.HostNetns(i), Name: underName, MAC: mac, MTU: s.MTU + chain.VXLANOverhead}
}

// reachUnderlay gives the link's namespace an end of the underlay of its own, over
// the line of its host, which other links use as well.
func reachUnderlay(s transport.Spec, i int) step.Step {
	h, end := s.Hosts[i], under(s, i)
	return step.Step{
		Name:  s.StepName(TunnelName, "reach the underlay of "+h.Name),
		Makes: []step.Resource{host.LinkResource(end.Netns, end.Name, end.MAC)},
		Do: func(context.Context) error {
			if err := host.CreateMacvlan(end, h.Netns, h.Device); err != nil {
				return err
			}
			return end.Netns.SetUp(end.Name)
		},
	}
}

// vxlanPort is the name of the switch's port towards host j.
func vxlanPort(j int) string { return fmt.Sprintf("vx%d", j+1) }

// createBridges makes the bridge of the ports, with a tunnel to each other host,
// and the one of the underlay. What comes by a tunnel goes into no other: each host
// has one to every other, and a broadcast would go round for ever.
func createBridges(s transport.Spec, e *engine, i int, report *transport.Report) step.Step {
	return step.Step{
		Name: s.StepName(TunnelName, e.named("create bridges")),
		Do: func(ctx context.Context) error {
			report.Datapath = datapathNetdev
			if host.HasNetlinkFamily("ovs_datapath") {
				report.Datapath = datapathSystem
			}
			bridge := func(name string) []string {
				return []string{
					"--", "add-br", name, "--", "set", "bridge", name, "datapath_type=" + report.Datapath, "fail_mode=standalone",
					"other_config:disable-in-band=true",
				}
			}
			own, err := s.Hosts[i].TunnelAddr(s.VNI)
			if err != nil {
				return err
			}
			args := append(bridge(underBridge), fmt.Sprintf("other_config:hwaddr=%q", under(s, i).MAC),
				// Of the kernel's route to the other hosts: with less it would refuse the longest packets.
				"--", "set", "Interface", underBridge, fmt.Sprintf("mtu_request=%d", under(s, i).MTU),
				"--", "add-port", underBridge, underName)
			args = append(args, bridge(bridgeName)...)
			for _, p := range s.PortsOn(s.Hosts[i].Name) {
				args = append(args, "--", "add-port", bridgeName, s.SwitchPort(p).Name)
			}
			for j, other := range s.Hosts {
				if j == i {
					continue
				}
				to, err := other.TunnelAddr(s.VNI)
				if err != nil {
					return err
				}
				args = append(args, "--", "add-port", bridgeName, vxlanPort(j), "--", "set", "Port", vxlanPort(j), "protected=true",
					"--", "set", "Interface", vxlanPort(j), "type=vxlan", "options:remote_ip="+to.Addr().String(), "options:local_ip="+own.Addr().String(),
					fmt.Sprintf("options:key=%d", s.VNI), fmt.Sprintf("options:dst_port=%d", tunnelPort))
			}
			if _, err := e.vsctl(ctx, args...); err != nil {
				return err
			}
			// The address at which the tunnel ends.
			ns := s.HostNetns(i)
			if err := ns.AddAddr(underBridge, own); err != nil {
				return err
			}
			if err := ns.SetUp(underBridge); err != nil {
				return err
			}
			version, err := switchVersion(ctx)
			report.Engine = Name + " " + version
			return err
		},
	}
}

// findHosts makes the userspace datapath know the way to each other host before
// the first packet, which would be lost to asking for it, and for as long as it
// remembers: by default 15 minutes. The switch learns its routes from the kernel, in
// its own time.
func (e *engine) findHosts(ctx context.Context, s transport.Spec, i int) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	if _, err := e.appctl(ctx, "tnl/neigh/aging", longestMemory); err != nil {
		return err
	}
	for j, other := range s.Hosts {
		if j == i {
			continue
		}
		to, err := other.TunnelAddr(s.VNI)
		if err != nil {
			return err
		}
		if err := awaitRoute(ctx, e, to.Addr().String()); err != nil {
			return err
		}
		if _, err := e.appctl(ctx, "tnl/neigh/set", underBridge, to.Addr().String(), under(s, j).MAC.String()); err != nil {
			return err
		}
	}
	return nil
}

func awaitRoute(ctx context.Context, e *engine, to string) error {
	for {
		out, err := e.appctl(ctx, "ovs/route/lookup", to)
		if err == nil && strings.Contains(out, "dev "+underBridge) {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("ovs-vswitchd has no route to %s (%q, %v)%s", to, out, err, e.lastWords(vswitchd))
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// checkTunnel asks the switch whether it forwards on every port of the host, and
// sees that it knows the way to the others.
func checkTunnel(s transport.Spec, e *engine, i int, report *transport.Report) step.Step {
	return step.Step{
		Name: s.StepName(TunnelName, e.named("check health")),
		Do: func(ctx context.Context) error {
			names := []string{underName}
			for _, p := range s.PortsOn(s.Hosts[i].Name) {
				names = append(names, s.SwitchPort(p).Name)
			}
			for j := range s.Hosts {
				if j != i {
					names = append(names, vxlanPort(j))
				}
			}
			if err := e.checkPorts(ctx, names); err != nil {
				return err
			}
			if report.Datapath == datapathSystem {
				return nil // the kernel asks for the way, and keeps the packet meanwhile
			}
			return e.findHosts(ctx, s, i)
		},
	}
}
