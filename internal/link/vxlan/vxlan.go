// SPDX-License-Identifier: Apache-2.0

// Package vxlan joins ports on different hosts like flannel. Each host has a
// Linux bridge with an end of a VXLAN tunnel, which carries Ethernet frames in
// UDP over the underlay.
package vxlan

import (
	"context"
	"fmt"
	"net"
	"slices"

	"github.com/drayage/dray/internal/host"
	"github.com/drayage/dray/internal/host/step"
	"github.com/drayage/dray/internal/link/transport"
	"github.com/drayage/dray/internal/spec/chain"
	"github.com/drayage/dray/internal/spec/inventory"
)

// Name is the transport's name in a chain file.
const Name = "vxlan"

const (
	bridgeName = "br0"
	tunnelName = "vxlan0"
	// port is flannel's on Linux, and the kernel's default. It leaves 4789,
	// which IANA assigned (RFC 7348), to Open vSwitch's tunnels: both kinds
	// can end on one host.
	port = 8472
	// maxMTU leaves room for the tunnel's headers in the longest IPv4 packet.
	maxMTU = 65535 - chain.VXLANOverhead
)

// New returns the driver.
func New() transport.Driver {
	return transport.Define(Name, caps, transport.Try(host.ProbeBridge, host.ProbeVxlan), build)
}

var caps = transport.Interfaces(inventory.Caps{
	MinEnds:    2,
	MaxEnds:    transport.BridgePorts - 1, // the tunnel has a port, too
	Tunnel:     true,
	MaxMTU:     maxMTU,
	Rank:       80,
	KernelPath: "socket, veth, bridge forwarding, VXLAN over UDP, underlay, VXLAN, bridge forwarding, veth, socket",
	Note:       "between simulated hosts; UDP port 8472; Drayage gives the tunnel the ports' addresses, and broadcasts go to each host",
})

func build(s transport.Spec) (*transport.Build, error) {
	build := transport.NewBuild()
	var tunnels []host.Iface
	for i, h := range s.Hosts {
		tunnels = append(tunnels, iface(s, i, tunnelName))
		build.Steps = append(build.Steps, s.CheckUnderlay(Name, h), s.CreateHostNetns(Name, i),
			s.CreateBridge(Name, "create bridge on "+h.Name, iface(s, i, bridgeName)), createTunnel(s, i), forward(s, i))
		for _, p := range s.PortsOn(h.Name) {
			build.Steps = append(build.Steps, s.CreatePort(Name, p, s.Ports()[p]), s.Attach(Name, p, bridgeName))
		}
	}
	build.Finish(Name, s)
	build.Steps = append(build.Steps, s.AwaitForwarding(Name, tunnels...))
	return build, nil
}

func iface(s transport.Spec, i int, name string) host.Iface {
	return host.Iface{Netns: s.HostNetns(i), Name: name, MAC: s.SwitchMAC(name + " on " + s.Hosts[i].Name), MTU: s.MTU}
}

// createTunnel creates the host's tunnel end in the host's namespace, and
// moves it to the link's.
func createTunnel(s transport.Spec, i int) step.Step {
	h, tunnel := s.Hosts[i], iface(s, i, tunnelName)
	return step.Step{
		Name:  s.StepName(Name, "create tunnel on "+h.Name),
		Makes: []step.Resource{host.LinkResource(tunnel.Netns, tunnel.Name, tunnel.MAC)},
		Do: func(context.Context) error {
			err := host.CreateVxlan(host.Vxlan{
				Iface: tunnel, Underlay: h.Netns, Device: h.Device, Local: h.Addr.Addr(), VNI: s.VNI, Port: port,
			})
			if err != nil {
				return err
			}
			if err := tunnel.Netns.SetMaster(tunnel.Name, bridgeName); err != nil {
				return err
			}
			return tunnel.Netns.SetUp(tunnel.Name)
		},
	}
}

// forward adds every port to the forwarding table of a host's tunnel end, as flannel's
// daemon does from its records. It also sends broadcasts to every other host.
func forward(s transport.Spec, i int) step.Step {
	ns := s.HostNetns(i)
	everybody := make(net.HardwareAddr, 6)
	return step.Step{
		Name: s.StepName(Name, "forward from "+s.Hosts[i].Name),
		Do: func(context.Context) error {
			for j, other := range s.Hosts {
				if j == i {
					continue
				}
				macs := []net.HardwareAddr{everybody}
				for _, p := range s.PortsOn(other.Name) {
					macs = append(macs, s.Ports()[p].MAC)
				}
				for _, mac := range macs {
					if err := ns.AddForwarding(tunnelName, mac, other.Addr.Addr()); err != nil {
						return err
					}
				}
				if err := checkForwarding(ns, macs, other); err != nil {
					return err
				}
			}
			return nil
		},
	}
}

// checkForwarding reads the tunnel's table back.
func checkForwarding(ns host.Netns, macs []net.HardwareAddr, other transport.Host) error {
	table, err := ns.ReadForwarding(tunnelName)
	if err != nil {
		return err
	}
	for _, mac := range macs {
		if !slices.Contains(table[mac.String()], other.Addr.Addr()) {
			return fmt.Errorf("the tunnel sends packets for %s to %v, not to %s", mac, table[mac.String()], other.Addr.Addr())
		}
	}
	return nil
}
