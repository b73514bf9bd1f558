// SPDX-License-Identifier: Apache-2.0

// Package ovsvxlan is shared by the drivers that join hosts by an Open vSwitch
// on each, with VXLAN between them. It has the switch's end of the underlay,
// its ports, and its routes to the other hosts.
package ovsvxlan

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/drayage/dray/internal/host"
	"github.com/drayage/dray/internal/host/step"
	"github.com/drayage/dray/internal/link/transport"
	"github.com/drayage/dray/internal/spec/chain"
)

const (
	// udpPort is IANA's for VXLAN (RFC 7348), and Open vSwitch's default. The
	// kernel tunnels of transport vxlan use another, so both kinds can end on
	// one host.
	udpPort = 4789
	// Bridge has the end of the underlay and the tunnel's address. With the
	// userspace datapath, the switch itself sends the tunnel's packets, and
	// only on its own bridge.
	Bridge = "br-under"
	// Uplink is the end of the underlay.
	Uplink = "under0"
	// longestMemory is the longest neighbour timeout of a switch, in seconds.
	longestMemory = "3600"
	// patience bounds a switch's time to learn a route from the kernel.
	patience = 30 * time.Second
)

// Under is the tunnel's end of the underlay on host i. The tunnel has its own
// address: during a move, a line carries two tunnels.
func Under(s transport.Spec, i int) host.Iface {
	mac := s.SwitchMAC(fmt.Sprintf("%s of tunnel %d on %s", Uplink, s.VNI, s.Hosts[i].Name))
	return host.Iface{Netns: s.HostNetns(i), Name: Uplink, MAC: mac, MTU: s.MTU + chain.VXLANOverhead}
}

// Reach is the step that gives the link's namespace on host i its own end of
// the underlay. Its host's line is shared with other links.
func Reach(driver string, s transport.Spec, i int) step.Step {
	h, end := s.Hosts[i], Under(s, i)
	return step.Step{
		Name:  s.StepName(driver, "reach the underlay of "+h.Name),
		Makes: []step.Resource{host.LinkResource(end.Netns, end.Name, end.MAC)},
		Do: func(context.Context) error {
			if err := host.CreateMacvlan(end, h.Netns, h.Device); err != nil {
				return err
			}
			return end.Netns.SetUp(end.Name)
		},
	}
}

// CheckAddresses reports whether every host has an address for the tunnel.
func CheckAddresses(s transport.Spec) error {
	for _, h := range s.Hosts {
		if _, err := h.TunnelAddr(s.VNI); err != nil {
			return fmt.Errorf("link %s: %w", s.Link, err)
		}
	}
	return nil
}

// Others are the hosts to which host i has a tunnel.
func Others(s transport.Spec, i int) []int {
	var list []int
	for j := range s.Hosts {
		if j != i {
			list = append(list, j)
		}
	}
	return list
}

// Port is the name of the switch's port towards host j.
func Port(j int) string { return fmt.Sprintf("vx%d", j+1) }

// Ports are the names of host i's ports towards the others.
func Ports(s transport.Spec, i int) []string {
	var names []string
	for _, j := range Others(s, i) {
		names = append(names, Port(j))
	}
	return names
}

// AddBridge are arguments of ovs-vsctl that create host i's underlay bridge.
func AddBridge(s transport.Spec, i int, datapath string) []string {
	end := Under(s, i)
	return []string{
		"--", "add-br", Bridge, "--", "set", "bridge", Bridge, "datapath_type=" + datapath, "fail_mode=standalone",
		"other_config:disable-in-band=true", fmt.Sprintf("other_config:hwaddr=%q", end.MAC),
		// For the kernel's route to the other hosts: a smaller MTU would reject the longest packets.
		"--", "set", "Interface", Bridge, fmt.Sprintf("mtu_request=%d", end.MTU),
		"--", "add-port", Bridge, Uplink,
	}
}

// AddPorts are arguments of ovs-vsctl that add a tunnel to each other host,
// with OpenFlow numbers from first on, to host i's bridge of ports. Packets
// from one tunnel never enter another: the tunnels form a full mesh, and a
// broadcast would loop forever.
func AddPorts(s transport.Spec, i int, bridge string, first int) ([]string, error) {
	own, err := s.Hosts[i].TunnelAddr(s.VNI)
	if err != nil {
		return nil, err
	}
	var args []string
	for n, j := range Others(s, i) {
		to, err := s.Hosts[j].TunnelAddr(s.VNI)
		if err != nil {
			return nil, err
		}
		args = append(args, "--", "add-port", bridge, Port(j), "--", "set", "Port", Port(j), "protected=true",
			"--", "set", "Interface", Port(j), "type=vxlan", "options:remote_ip="+to.Addr().String(), "options:local_ip="+own.Addr().String(),
			fmt.Sprintf("options:key=%d", s.VNI), fmt.Sprintf("options:dst_port=%d", udpPort), fmt.Sprintf("ofport_request=%d", first+n))
	}
	return args, nil
}

// Address sets the address of host i's tunnel end on the switch's underlay
// bridge, if it is missing.
func Address(s transport.Spec, i int) error {
	own, err := s.Hosts[i].TunnelAddr(s.VNI)
	if err != nil {
		return err
	}
	ns := s.HostNetns(i)
	state, err := ns.ReadLink(Bridge)
	if err != nil {
		return err
	}
	if !slices.Contains(state.Addrs, own) {
		if err := ns.AddAddr(Bridge, own); err != nil {
			return err
		}
	}
	return ns.SetUp(Bridge)
}

// Appctl sends a command to a running ovs-vswitchd.
type Appctl func(ctx context.Context, args ...string) (string, error)

// FindHosts sets each other host's neighbour entry in host i's userspace
// datapath: otherwise address resolution would lose the first packet. It also
// extends the neighbour timeout, by default 15 minutes. The switch learns its
// routes from the kernel, with a delay.
func FindHosts(ctx context.Context, s transport.Spec, i int, ask Appctl) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if _, err := ask(ctx, "tnl/neigh/aging", longestMemory); err != nil {
		return err
	}
	for _, j := range Others(s, i) {
		to, err := s.Hosts[j].TunnelAddr(s.VNI)
		if err != nil {
			return err
		}
		if err := awaitRoute(ctx, ask, to.Addr().String()); err != nil {
			return err
		}
		next := Under(s, j).MAC
		if gateway := s.Hosts[i].Gateway; gateway != nil {
			next = gateway
		}
		if _, err := ask(ctx, "tnl/neigh/set", Bridge, to.Addr().String(), next.String()); err != nil {
			return err
		}
	}
	return nil
}

func awaitRoute(ctx context.Context, ask Appctl, to string) error {
	for {
		out, err := ask(ctx, "ovs/route/lookup", to)
		if err == nil && strings.Contains(out, "dev "+Bridge) {
			return nil
		}
		if host.Sleep(ctx, 10*time.Millisecond) != nil {
			return fmt.Errorf("ovs-vswitchd has no route to %s (%q, %v)", to, out, err)
		}
	}
}
