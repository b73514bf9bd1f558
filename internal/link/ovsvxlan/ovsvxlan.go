// SPDX-License-Identifier: Apache-2.0

// Package ovsvxlan is what the drivers share that join hosts by an Open vSwitch on
// each, with VXLAN between them: the switch's end of the underlay, its ports, and
// what it must know of the other hosts.
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
	// kernel's tunnels of transport vxlan have another, so that both kinds may end on
	// one host.
	udpPort = 4789
	// Bridge has the end of the underlay and the tunnel's address: with the
	// userspace datapath the switch itself sends the tunnel's packets, and does so on
	// a bridge of its own only.
	Bridge = "br-under"
	// Uplink is that end.
	Uplink = "under0"
	// longestMemory is for how many seconds a switch may remember a neighbour at most.
	longestMemory = "3600"
	// patience bounds how long a switch may take to learn a route of the kernel's.
	patience = 30 * time.Second
)

// Under is the tunnel's end of the underlay on host i. Its address is the tunnel's
// own: while a link moves there are two on one line.
func Under(s transport.Spec, i int) host.Iface {
	mac := s.SwitchMAC(fmt.Sprintf("%s of tunnel %d on %s", Uplink, s.VNI, s.Hosts[i].Name))
	return host.Iface{Netns: s.HostNetns(i), Name: Uplink, MAC: mac, MTU: s.MTU + chain.VXLANOverhead}
}

// Reach is the step that gives the link's namespace on host i an end of the underlay
// of its own, over the line of its host, which other links use as well.
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

// Others are the hosts that host i has a tunnel to.
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

// Ports are the names of those of host i.
func Ports(s transport.Spec, i int) []string {
	var names []string
	for _, j := range Others(s, i) {
		names = append(names, Port(j))
	}
	return names
}

// AddBridge are arguments of ovs-vsctl that make host i's bridge of the underlay.
func AddBridge(s transport.Spec, i int, datapath string) []string {
	end := Under(s, i)
	return []string{
		"--", "add-br", Bridge, "--", "set", "bridge", Bridge, "datapath_type=" + datapath, "fail_mode=standalone",
		"other_config:disable-in-band=true", fmt.Sprintf("other_config:hwaddr=%q", end.MAC),
		// Of the kernel's route to the other hosts: with less it would refuse the longest packets.
		"--", "set", "Interface", Bridge, fmt.Sprintf("mtu_request=%d", end.MTU),
		"--", "add-port", Bridge, Uplink,
	}
}

// AddPorts are arguments of ovs-vsctl that give the bridge of host i's ports a tunnel
// to each other host, with OpenFlow's numbers from first on. What comes by a tunnel
// goes into no other: each host has one to every other, and a broadcast would go
// round for ever.
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

// Address gives the switch's bridge of the underlay, if it lacks it, the address
// at which host i's end of the tunnel is.
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

// Appctl asks a running ovs-vswitchd.
type Appctl func(ctx context.Context, args ...string) (string, error)

// FindHosts makes the userspace datapath of host i know the way to each other host
// before the first packet, which would be lost to asking for it, and for as long as it
// remembers: by default 15 minutes. The switch learns its routes from the kernel, in
// its own time.
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
		if _, err := ask(ctx, "tnl/neigh/set", Bridge, to.Addr().String(), Under(s, j).MAC.String()); err != nil {
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
