// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"math/bits"
	"net/netip"
	"slices"

	"github.com/drayage/dray/internal/spec/chain"
)

// benchmarking is the range of assigned addresses: RFC 2544, appendix C, reserves it
// for tests between two systems.
var benchmarking = netip.MustParsePrefix("198.18.0.0/15")

// Each link without an address takes a /24 of the benchmarking range, or more if it has
// many ports. Links beyond the first hundreds take small subnets, from firstSmall on.
const linkBits, smallBits = 24, 29

var firstSmall = netip.MustParseAddr("198.19.128.0")

// addresses assigns the addresses that the chain does not name.
type addresses struct {
	named []netip.Prefix // the subnets of all addresses that the chain names
	used  map[netip.Addr]bool
	// The first address of the next subnet to try, of each size.
	next, small netip.Addr
}

// assignIPs assigns every port an address.
func (p *planner) assignIPs() {
	a := &addresses{used: map[netip.Addr]bool{}, next: benchmarking.Addr(), small: firstSmall}
	for _, f := range p.chain.Functions {
		for _, port := range f.Ports {
			if port.IP.IsValid() {
				a.named = append(a.named, port.IP.Masked())
				a.used[port.IP.Addr()] = true
			}
		}
		for _, t := range f.Tuns {
			a.named = append(a.named, t.IP.Masked())
		}
	}
	stations := p.stations()
	for i := range p.plan.Links {
		others := 0 // that the link's subnet may have
		for _, s := range stations[p.plan.Links[i].uplink()] {
			for _, ip := range s.IPs {
				a.used[ip] = true
				if benchmarking.Contains(ip) {
					others++
				}
			}
		}
		p.assignLinkIPs(&p.chain.Links[i], &p.plan.Links[i], others, a)
	}
}

func (p *planner) assignLinkIPs(l *chain.Link, link *Link, others int, a *addresses) {
	v := Violation{Subject: "link " + l.Name, Constraint: "ip", Pos: l.Pos, Hard: true}
	subnet, ok := linkSubnet(link, others, a)
	if !ok {
		v.Reason = fmt.Sprintf("%s has no room for another %s", benchmarking, ports(len(link.Ends)))
		v.Fix = "give the link's ports ip addresses"
		p.violate(v)
		return
	}
	for i := range link.Ends {
		e := &link.Ends[i]
		if e.Uplink != "" || e.IP.IsValid() {
			continue
		}
		addr, ok := a.take(subnet)
		if !ok {
			v.Constraint = "ip of " + e.String()
			v.Reason = fmt.Sprintf("%s has no free address left", subnet)
			v.Fix = "give the port an ip, or the other ports a larger subnet"
			if !p.namesIP(l) { // the ports have kept the addresses that they were assigned
				v.Fix = fmt.Sprintf("take the chain down and up again, which assigns addresses of a larger subnet: dray down %s", p.chain.Name)
			}
			p.violate(v)
			return
		}
		e.IP = netip.PrefixFrom(addr, subnet.Bits())
		if link.uplink() != "" {
			p.warn("link %s: %s has no ip in the chain file and gets %s; hosts behind the uplink must be in that subnet", l.Name, e, e.IP)
		}
	}
}

// namesIP reports whether the chain's file names an address on a link. A chain that is up has
// the addresses of its ports, too.
func (p *planner) namesIP(l *chain.Link) bool {
	return slices.ContainsFunc(l.Ends, func(e chain.End) bool {
		if e.IsUplink() {
			return false
		}
		_, named := p.chain.Function(e.Function).Port(e.Port).FieldPos["ip"]
		return named
	})
}

// linkSubnet is the subnet of the first address named on the link, or else the next free one
// that has room for the link's ports and others.
func linkSubnet(link *Link, others int, a *addresses) (netip.Prefix, bool) {
	for _, e := range link.Ends {
		if e.IP.IsValid() {
			return e.IP.Masked(), true
		}
	}
	return a.nextSubnet(len(link.Ends) + others)
}

// nextSubnet is the next subnet for a number of ports that overlaps no address of the
// chain.
func (a *addresses) nextSubnet(ports int) (netip.Prefix, bool) {
	if subnet, ok := a.find(&a.next, firstSmall, min(linkBits, bitsFor(ports))); ok {
		return subnet, true
	}
	return a.find(&a.small, lastAddr(benchmarking).Next(), min(smallBits, bitsFor(ports)))
}

// find is the next subnet of that size that begins at next or later, and ends before end.
func (a *addresses) find(next *netip.Addr, end netip.Addr, length int) (netip.Prefix, bool) {
	for {
		subnet := netip.PrefixFrom(*next, length).Masked()
		if subnet.Addr().Less(*next) { // it would overlap the one before
			subnet = netip.PrefixFrom(lastAddr(subnet).Next(), length)
		}
		after := lastAddr(subnet).Next()
		if end.Less(after) {
			return netip.Prefix{}, false
		}
		*next = after
		if !slices.ContainsFunc(a.named, subnet.Overlaps) {
			return subnet, true
		}
	}
}

// bitsFor is the prefix length of the smallest IPv4 subnet with that many hosts, besides its
// own address and the broadcast.
func bitsFor(hosts int) int { return 32 - bits.Len(uint(hosts+1)) }

// take returns the lowest free host address of the subnet. The first address
// names the subnet (IPv4) or its routers (RFC 4291, 2.6.1), the last is IPv4's
// broadcast; in a /31 and a /127 both are hosts (RFC 3021, RFC 6164).
func (a *addresses) take(subnet netip.Prefix) (netip.Addr, bool) {
	addr := subnet.Addr()
	last := lastAddr(subnet)
	pointToPoint := addr.BitLen()-subnet.Bits() <= 1
	if !pointToPoint {
		addr = addr.Next()
	}
	for ; subnet.Contains(addr); addr = addr.Next() {
		if addr == last && addr.Is4() && !pointToPoint {
			break
		}
		if !a.used[addr] {
			a.used[addr] = true
			return addr, true
		}
	}
	return netip.Addr{}, false
}

// lastAddr is the highest address of a prefix.
func lastAddr(p netip.Prefix) netip.Addr {
	b := p.Masked().Addr().AsSlice()
	for bit := p.Bits(); bit < len(b)*8; bit++ {
		b[bit/8] |= 1 << (7 - bit%8)
	}
	addr, _ := netip.AddrFromSlice(b)
	return addr
}
