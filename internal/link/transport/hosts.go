// SPDX-License-Identifier: Apache-2.0

package transport

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"path/filepath"

	"github.com/drayage/dray/internal/host"
	"github.com/drayage/dray/internal/host/step"
	"github.com/drayage/dray/internal/spec/chain"
	"github.com/drayage/dray/internal/spec/inventory"
)

// Host is a simulated host, as its links see it: it exists before them and
// outlives them.
type Host struct {
	Name   string
	Netns  host.Netns // where its end of the underlay is
	Device string     // that end
	// Addr is the address of Device, in the underlay's subnet. The next
	// TunnelAddresses addresses are for tunnel ends.
	Addr netip.Prefix
	// Gateway is the hardware address that answers for all other hosts; nil:
	// each has its own.
	Gateway net.HardwareAddr
}

// TunnelAddresses is how many underlay addresses each host has for tunnel
// ends.
const TunnelAddresses = 8189

// TunnelAddr is the address of the end of tunnel vni, for tunnels that cannot
// share the host's own.
func (h Host) TunnelAddr(vni int) (netip.Prefix, error) {
	if vni < 1 || vni > TunnelAddresses {
		return netip.Prefix{}, fmt.Errorf("host %s has no address for tunnel %d: each has %d; bring the chain down, and up again", h.Name, vni, TunnelAddresses)
	}
	b := h.Addr.Addr().As4()
	n := uint32(b[0])<<24 | uint32(b[1])<<16 | uint32(b[2])<<8 | uint32(b[3])
	n += uint32(vni)
	addr := netip.AddrFrom4([4]byte{byte(n >> 24), byte(n >> 16), byte(n >> 8), byte(n)})
	return netip.PrefixFrom(addr, h.Addr.Bits()), nil
}

// PortsOn are the indices in Ports of the ports on that simulated host.
func (s Spec) PortsOn(name string) []int {
	var on []int
	for i, e := range s.Ports() {
		if e.Host == name {
			on = append(on, i)
		}
	}
	return on
}

// HostNetns is the link's own namespace on simulated host i. It holds the
// link's bridge, so names in it cannot collide.
func (s Spec) HostNetns(i int) host.Netns {
	return host.Netns{Path: filepath.Join(s.Dir, fmt.Sprintf("host%d.net", i+1))}
}

// CreateHostNetns is the step that creates the link's namespace on host i.
func (s Spec) CreateHostNetns(driver string, i int) step.Step {
	return s.CreateNetns(driver, "create namespace on "+s.Hosts[i].Name, s.HostNetns(i))
}

// CheckUnderlay is the step that checks a host's end of the underlay before a
// tunnel uses it; it changes nothing.
func (s Spec) CheckUnderlay(driver string, h Host) step.Step {
	return step.Step{
		Name: s.StepName(driver, "check underlay of "+h.Name),
		Do: func(context.Context) error {
			end, err := h.Netns.ReadLink(h.Device)
			switch {
			case err != nil:
				return err
			case !end.Up:
				return fmt.Errorf("the underlay of host %s is down", h.Name)
			case end.MTU < s.MTU+chain.VXLANOverhead:
				return fmt.Errorf("the underlay of host %s has MTU %d, and a tunnel for packets of %d needs %d: lower the ports' mtu, or raise the underlay's",
					h.Name, end.MTU, s.MTU, s.MTU+chain.VXLANOverhead)
			}
			return nil
		},
	}
}

// checkHosts reports why a driver cannot serve the link's hosts.
func checkHosts(caps inventory.Caps, s Spec) error {
	known := map[string]bool{}
	for _, h := range s.Hosts {
		if known[h.Name] {
			return fmt.Errorf("host %s appears twice; name it once", h.Name)
		}
		if !h.Addr.Addr().Is4() {
			return fmt.Errorf("host %s has the address %s on the underlay, which is not IPv4", h.Name, h.Addr)
		}
		known[h.Name] = true
	}
	switch {
	case !caps.Tunnel && len(s.Hosts) > 1:
		return errors.New("its ports are on different hosts, but the transport joins only ports on one host; use transport vxlan")
	case !caps.Tunnel:
		return nil
	case len(s.Hosts) < 2:
		return errors.New("its ports are on one host, but the transport joins only ports on different hosts; use transport bridge")
	case s.VNI < 1 || s.VNI >= 1<<24:
		return fmt.Errorf("the tunnel's number %d is not within 1–%d", s.VNI, 1<<24-1)
	}
	for _, e := range s.Ports() {
		if !known[e.Host] {
			return fmt.Errorf("port %s is on host %q, which the link does not name", e.Name, e.Host)
		}
	}
	return nil
}
