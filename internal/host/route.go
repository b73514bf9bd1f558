// SPDX-License-Identifier: Apache-2.0

package host

import (
	"fmt"
	"net"
	"net/netip"

	"github.com/vishvananda/netlink"
)

// RouteIPv4 makes the namespace pass on IPv4 packets that are not for it. Interfaces made
// later take packets from any sender: routes there and back may differ. It works where
// sysctls are read-only.
func (n Netns) RouteIPv4() error {
	return n.setIPv4(map[string]string{"ip_forward": "1", "conf/all/rp_filter": "0", "conf/default/rp_filter": "0"})
}

// AnswerForOthers makes the namespace answer at once, on that interface, for every address
// to which it has a route by another one (proxy ARP, RFC 1027).
func (n Netns) AnswerForOthers(name string) error {
	return n.setIPv4(map[string]string{"conf/" + name + "/proxy_arp": "1", "neigh/" + name + "/proxy_delay": "0"})
}

// setIPv4 writes sysctls below net.ipv4.
func (n Netns) setIPv4(values map[string]string) error {
	return n.Do(func() error {
		for name, value := range values {
			if err := writeProc("sys/net/ipv4/"+name, value); err != nil {
				return fmt.Errorf("set net/ipv4/%s to %s in %s: %w", name, value, n, err)
			}
		}
		return nil
	})
}

// Hop is how packets go on to some addresses.
type Hop struct {
	Dev string
	// Via is the next router, whose hardware address on Dev is MAC; invalid: the addresses
	// themselves are on Dev.
	Via netip.Addr
	MAC net.HardwareAddr
}

// AddRoute sends packets for those addresses by hop. Neither end of Dev needs an address.
func (n Netns) AddRoute(to netip.Prefix, hop Hop) error {
	if hop.Via.IsValid() {
		if err := n.AddNeighbour(hop.Dev, hop.Via, hop.MAC); err != nil {
			return err
		}
	}
	return n.withLink(hop.Dev, func(nl *netlink.Handle, l netlink.Link) error {
		route := &netlink.Route{
			LinkIndex: l.Attrs().Index, Scope: netlink.SCOPE_LINK,
			Dst: &net.IPNet{IP: to.Addr().AsSlice(), Mask: net.CIDRMask(to.Bits(), to.Addr().BitLen())},
		}
		if hop.Via.IsValid() {
			route.Scope, route.Gw, route.Flags = netlink.SCOPE_UNIVERSE, hop.Via.AsSlice(), int(netlink.FLAG_ONLINK)
		}
		if err := nl.RouteAdd(route); err != nil {
			return fmt.Errorf("route %s by %s in %s: %w", to, hop.Dev, n, err)
		}
		return nil
	})
}

// LinkWith is the interface that has an address; "": none.
func (n Netns) LinkWith(addr netip.Addr) (string, error) {
	nl, err := n.handle()
	if err != nil {
		return "", err
	}
	defer nl.Close()
	all, err := dump(func() ([]netlink.Addr, error) { return nl.AddrList(nil, netlink.FAMILY_ALL) })
	if err != nil {
		return "", fmt.Errorf("addresses in %s: %w", n, err)
	}
	for _, a := range all {
		if ip, ok := netip.AddrFromSlice(a.IP); !ok || ip.Unmap() != addr {
			continue
		}
		l, err := nl.LinkByIndex(a.LinkIndex)
		if err != nil {
			return "", fmt.Errorf("the interface with address %s in %s: %w", addr, n, err)
		}
		return l.Attrs().Name, nil
	}
	return "", nil
}

// ReadRoute is the interface by which packets for that address leave.
func (n Netns) ReadRoute(to netip.Addr) (string, error) {
	nl, err := n.handle()
	if err != nil {
		return "", err
	}
	defer nl.Close()
	routes, err := nl.RouteGet(to.AsSlice())
	if err != nil {
		return "", fmt.Errorf("route to %s in %s: %w", to, n, err)
	}
	if len(routes) == 0 {
		return "", fmt.Errorf("there is no route to %s in %s", to, n)
	}
	l, err := nl.LinkByIndex(routes[0].LinkIndex)
	if err != nil {
		return "", fmt.Errorf("route to %s in %s: %w", to, n, err)
	}
	return l.Attrs().Name, nil
}
