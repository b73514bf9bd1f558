// SPDX-License-Identifier: Apache-2.0

package transport

import (
	"context"
	"crypto/sha256"
	"fmt"
	"net"
	"path/filepath"
	"slices"
	"time"

	"github.com/drayage/dray/internal/host"
	"github.com/drayage/dray/internal/host/step"
)

// SwitchNetns is the link's own namespace for its switch. The host's firewall
// does not apply there, and names cannot collide with other links'.
func (s Spec) SwitchNetns() host.Netns { return host.Netns{Path: filepath.Join(s.Dir, "switch.net")} }

// SwitchMAC is the address of an interface inside the switch's namespace,
// stable for one chain, link and role.
func (s Spec) SwitchMAC(role string) net.HardwareAddr {
	sum := sha256.Sum256([]byte(s.Chain + "\x00" + s.Link + "\x00" + role))
	mac := net.HardwareAddr(sum[:6])
	mac[0] = mac[0]&^1 | 2 // unicast, locally administered
	return mac
}

// SwitchIface is an interface inside the switch's namespace.
func (s Spec) SwitchIface(name string) host.Iface {
	return host.Iface{Netns: s.SwitchNetns(), Name: name, MAC: s.SwitchMAC(name), MTU: s.MTU}
}

// SwitchPort is the switch's side of port i. If ports are on several hosts, it
// is in the link's namespace on that port's host.
func (s Spec) SwitchPort(i int) host.Iface {
	port := s.SwitchIface(fmt.Sprintf("p%d", i+1))
	if len(s.Hosts) > 1 {
		on := s.Ports()[i].Host
		port.Netns = s.HostNetns(slices.IndexFunc(s.Hosts, func(h Host) bool { return h.Name == on }))
	}
	return port
}

// CreateSwitchNetns is the step that creates the switch's namespace.
func (s Spec) CreateSwitchNetns(driver string) step.Step {
	return s.CreateNetns(driver, "create namespace", s.SwitchNetns())
}

// CreateNetns is the step that creates a namespace of the link.
func (s Spec) CreateNetns(driver, what string, ns host.Netns) step.Step {
	return step.Step{
		Name:  s.StepName(driver, what),
		Makes: []step.Resource{host.NamespaceResource(ns.Path)},
		Do: func(context.Context) error {
			if err := host.CreateNetns(ns.Path); err != nil {
				return err
			}
			return ns.DisableIPv6()
		},
	}
}

// BridgePorts is how many ports a Linux bridge can have: its port numbers have ten bits,
// and 0 is none (BR_MAX_PORTS in net/bridge/br_private.h).
const BridgePorts = 1023

// CreateBridge is the step that creates a Linux bridge and brings it up.
func (s Spec) CreateBridge(driver, what string, br host.Iface) step.Step {
	return step.Step{
		Name:  s.StepName(driver, what),
		Makes: []step.Resource{host.LinkResource(br.Netns, br.Name, br.MAC)},
		Do: func(context.Context) error {
			if err := host.CreateBridge(br); err != nil {
				return err
			}
			return br.Netns.SetUp(br.Name)
		},
	}
}

// Attach is the step that adds the switch's side of port i to a Linux bridge.
func (s Spec) Attach(driver string, i int, bridge string) step.Step {
	port := s.SwitchPort(i)
	return step.Step{
		Name: s.StepName(driver, fmt.Sprintf("attach end %d %s", i+1, s.Ports()[i].Name)),
		Do:   func(context.Context) error { return port.Netns.SetMaster(port.Name, bridge) },
	}
}

// forwardTimeout bounds the wait for a bridge. The kernel takes up to a second; this process may
// get no CPU for longer.
const forwardTimeout = 30 * time.Second

// AwaitForwarding is the last step of a Linux bridge: it waits until the bridge
// forwards on its sides of the ports, and on the other interfaces. A port has a
// carrier only if both of its ends are up.
func (s Spec) AwaitForwarding(driver string, others ...host.Iface) step.Step {
	return s.await(driver, "wait until the bridge forwards", forwardTimeout, host.Netns.WaitForwarding, others...)
}

// AwaitForwardingAt is AwaitForwarding for these ports of a bridge only.
func (s Spec) AwaitForwardingAt(driver string, ports ...host.Iface) step.Step {
	return s.awaitAt(driver, "wait until the bridge forwards", forwardTimeout, host.Netns.WaitForwarding, ports)
}

// await is the step that waits for the switch's side of every port, and for the others.
func (s Spec) await(driver, what string, atMost time.Duration, wait func(host.Netns, context.Context, string) error, others ...host.Iface) step.Step {
	all := slices.Clip(others)
	for i := range s.Ports() {
		all = append(all, s.SwitchPort(i))
	}
	return s.awaitAt(driver, what, atMost, wait, all)
}

func (s Spec) awaitAt(driver, what string, atMost time.Duration, wait func(host.Netns, context.Context, string) error, all []host.Iface) step.Step {
	return step.Step{
		Name: s.StepName(driver, what),
		Do: func(ctx context.Context) error {
			ctx, cancel := context.WithTimeout(ctx, atMost)
			defer cancel()
			for _, i := range all {
				if err := wait(i.Netns, ctx, i.Name); err != nil {
					return err
				}
			}
			return nil
		},
	}
}

// CreatePort is the step that creates port i and its peer in the switch's
// namespace, and brings the peer up.
func (s Spec) CreatePort(driver string, i int, e End) step.Step {
	inner := s.SwitchPort(i)
	return step.Step{
		Name:  s.StepName(driver, fmt.Sprintf("create end %d %s", i+1, e.Name)),
		Makes: []step.Resource{PortResource(e)}, // a veth is removed with its peer
		Do: func(context.Context) error {
			if err := host.CreateVeth(s.Iface(e), inner); err != nil {
				return err
			}
			return inner.Netns.SetUp(inner.Name)
		},
	}
}

// CreateSwitchPair is the step that creates a veth pair in the switch's namespace, p1 and p2, does
// what it is asked to with them, and brings both up. A veth has a carrier only if both ends are up.
func (s Spec) CreateSwitchPair(driver, what string, with func(a, b host.Iface) error) step.Step {
	a, b := s.SwitchPort(0), s.SwitchPort(1)
	return step.Step{
		Name: s.StepName(driver, what),
		Makes: []step.Resource{
			host.LinkResource(a.Netns, a.Name, a.MAC),
			host.LinkResource(b.Netns, b.Name, b.MAC),
		},
		Do: func(context.Context) error {
			if err := host.CreateVeth(a, b); err != nil {
				return err
			}
			if err := with(a, b); err != nil {
				return err
			}
			if err := a.Netns.SetUp(a.Name); err != nil {
				return err
			}
			return b.Netns.SetUp(b.Name)
		},
	}
}

// AwaitSwitchPorts is the step that waits until the switch's port sides are
// operational. Before that, the kernel drops the switch's packets.
func (s Spec) AwaitSwitchPorts(driver string) step.Step {
	return s.await(driver, "wait for the switch's ports", carrierTimeout, host.Netns.WaitCarrier)
}

// CheckUplink is the step that checks a host interface before its use; it
// changes nothing.
func (s Spec) CheckUplink(driver string, e End) step.Step {
	return step.Step{
		Name: s.StepName(driver, "check uplink "+e.Name),
		Do: func(context.Context) error {
			up, err := e.Netns.ReadLink(e.Name)
			switch {
			case err != nil:
				return err
			case !up.Up:
				return fmt.Errorf("uplink %s is down: ip link set %s up", e.Name, e.Name)
			case up.MTU < s.MTU:
				return fmt.Errorf("uplink %s has MTU %d, but the link needs %d: lower the port's mtu, or ip link set %s mtu %d",
					e.Name, up.MTU, s.MTU, e.Name, s.MTU)
			}
			return nil
		},
	}
}
