// SPDX-License-Identifier: Apache-2.0

package sol001

import (
	"net/netip"

	"github.com/drayage/dray/internal/spec/chain"
	"github.com/drayage/dray/internal/spec/parse"
)

// fixedAddresses gives ports the addresses that the descriptor fixes. A chain file has
// them with their subnet.
func (d *draft) fixedAddresses(l *link) {
	addresses, at := map[*port]netip.Addr{}, map[netip.Addr]bool{}
	for _, p := range l.members {
		if a := d.fixedAddress(p, l, at); a.IsValid() {
			addresses[p], at[a] = a, true
		}
	}
	if len(addresses) == 0 || d.overlaps(l) {
		if l.cidr.IsValid() {
			d.note(l.cidrAt, l.in, "give its ports an ip", "the chain's ports have no addresses of the subnet %s; the planner chooses them", l.cidr)
		}
		return
	}
	for p, a := range addresses {
		p.ip = netip.PrefixFrom(a, l.cidr.Bits())
	}
}

// fixedAddress is the one that the descriptor fixes for a port, if no other port of the link
// has it and the chain can.
func (d *draft) fixedAddress(p *port, l *link, others map[netip.Addr]bool) netip.Addr {
	if p.of == nil || len(p.fixed) == 0 {
		return netip.Addr{}
	}
	n := d.resolve(p.fixed[0], p.in)
	if n == nil {
		return netip.Addr{}
	}
	a, err := netip.ParseAddr(n.Value)
	switch {
	case err != nil || len(p.fixed) > 1 || p.of.count > 1:
		d.note(p.fixed[0], p.in, "", "a port of a chain has one address, so %s is left out", parse.Quote(n.Value))
	case !l.cidr.IsValid() || !l.cidr.Contains(a):
		d.note(p.fixed[0], p.in, "give the virtual link a cidr that contains it", "%s is in no subnet of the virtual link, so it is left out", a)
	case others[a] || a.Is6() && l.mtu != 0 && l.mtu < minMTUIPv6 || chain.Unusable(netip.PrefixFrom(a, l.cidr.Bits())) != "":
		d.note(p.fixed[0], p.in, "", "no port of this link can have the address %s, so it is left out", a)
	default:
		return a
	}
	return netip.Addr{}
}

// overlaps reports whether a function of the link has a port with an address of the same
// subnet on another link, which a chain file cannot have.
func (d *draft) overlaps(l *link) bool {
	for _, m := range l.members {
		if m.of == nil {
			continue
		}
		for _, p := range m.of.ports {
			if p.link != l && p.ip.IsValid() && p.ip.Overlaps(l.cidr) {
				return true
			}
		}
	}
	return false
}
