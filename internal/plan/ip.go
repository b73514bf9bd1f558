// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"net/netip"
	"slices"

	"github.com/drayage/dray/internal/spec/chain"
)

// benchmarking is the range of assigned addresses: RFC 2544, appendix C, reserves it
// for tests between two systems. Each link without an address takes a /24 of it.
var benchmarking = netip.MustParsePrefix("198.18.0.0/15")

const linkBits = 24

// addresses assigns the addresses that the chain does not name.
type addresses struct {
	named []netip.Prefix // the subnets of all addresses that the chain names
	used  map[netip.Addr]bool
	next  netip.Addr // the first address of the next subnet to try
}

// assignIPs assigns every port an address.
func (p *planner) assignIPs() {
	a := &addresses{used: map[netip.Addr]bool{}, next: benchmarking.Addr()}
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
	for i := range p.plan.Links {
		p.assignLinkIPs(&p.chain.Links[i], &p.plan.Links[i], a)
	}
}

func (p *planner) assignLinkIPs(l *chain.Link, link *Link, a *addresses) {
	v := Violation{Subject: "link " + l.Name, Constraint: "ip", Pos: l.Pos, Hard: true}
	subnet, ok := linkSubnet(link, a)
	if !ok {
		v.Reason = fmt.Sprintf("every /%d of %s is taken", linkBits, benchmarking)
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
			p.violate(v)
			return
		}
		e.IP = netip.PrefixFrom(addr, subnet.Bits())
		if hasUplink(l) {
			p.warn("link %s: %s has no ip in the chain file and gets %s; hosts behind the uplink must be in that subnet", l.Name, e, e.IP)
		}
	}
}

// linkSubnet is the subnet of the first address named on the link, or else the next
// free one.
func linkSubnet(link *Link, a *addresses) (netip.Prefix, bool) {
	for _, e := range link.Ends {
		if e.IP.IsValid() {
			return e.IP.Masked(), true
		}
	}
	return a.nextSubnet()
}

// nextSubnet is the next subnet that overlaps no address of the chain.
func (a *addresses) nextSubnet() (netip.Prefix, bool) {
	for benchmarking.Contains(a.next) {
		subnet := netip.PrefixFrom(a.next, linkBits)
		a.next = lastAddr(subnet).Next()
		if !slices.ContainsFunc(a.named, subnet.Overlaps) {
			return subnet, true
		}
	}
	return netip.Prefix{}, false
}

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

func hasUplink(l *chain.Link) bool { return slices.ContainsFunc(l.Ends, chain.End.IsUplink) }
