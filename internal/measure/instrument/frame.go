// SPDX-License-Identifier: Apache-2.0

package instrument

import "net/netip"

const (
	ipv4Header  = 20
	ipv6Header  = 40
	udpHeader   = 8
	icmpHeader  = 8
	ethernet    = 18 // header 14 and FCS 4, without VLAN tag
	maxDatagram = 65507
	// smallPayload makes an Ethernet frame of 64 bytes with IPv4; with IPv6
	// the same payload makes 84.
	smallPayload = 64 - ethernet - ipv4Header - udpHeader
)

func ipHeader(ip netip.Addr) int {
	if ip.Is6() && !ip.Is4In6() {
		return ipv6Header
	}
	return ipv4Header
}

// fullPayload is the UDP payload that fills one packet of the link.
func fullPayload(from, to Endpoint) int {
	return min(min(from.MTU, to.MTU)-ipHeader(to.IP)-udpHeader, maxDatagram)
}

// frameBytes is a UDP payload's frame on an Ethernet wire, with FCS.
func frameBytes(payload int, ip netip.Addr) int {
	return max(64, payload+udpHeader+ipHeader(ip)+ethernet)
}
