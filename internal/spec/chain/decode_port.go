// SPDX-License-Identifier: Apache-2.0

package chain

import (
	"net"
	"net/netip"
	"regexp"

	"go.yaml.in/yaml/v3"
)

var portFields = []field[Port]{
	{"name", true, func(d *decoder, n *yaml.Node, p *Port) { p.Name = d.portName(n) }},
	{"face", false, func(d *decoder, n *yaml.Node, p *Port) {
		if v, ok := choice(d, n, "face", faces); ok {
			p.Face = v
		}
	}},
	{"ip", false, func(d *decoder, n *yaml.Node, p *Port) { p.IP = d.ip(n) }},
	{"mac", false, func(d *decoder, n *yaml.Node, p *Port) { p.MAC = d.mac(n) }},
	{"mtu", false, func(d *decoder, n *yaml.Node, p *Port) {
		if v, ok := d.integer(n, "mtu", minMTU, maxMTU); ok {
			p.MTU = v
		}
	}},
	{"queues", false, func(d *decoder, n *yaml.Node, p *Port) {
		if v, ok := d.integer(n, "queues", 1, maxQueues); ok {
			p.Queues = v
		}
	}},
	{"hold", false, decodeHold},
	{"qos", false, func(d *decoder, n *yaml.Node, p *Port) {
		p.QoS = d.qdisc(n)
		d.refuseAt(p.QoS, "a port's own qos is of what the port sends: only the link's can be at the switch")
	}},
}

func decodePorts(d *decoder, n *yaml.Node, f *Function) {
	names := newUnique("ports of one function")
	d.list(n, "ports", func(item *yaml.Node) {
		p := Port{Face: FaceNetdev, MTU: defaultMTU, Queues: 1, Pos: d.position(item)}
		values := object(d, item, "a port", portFields, &p)
		p.FieldPos = d.positions(values)
		names.add(d, p.Name, values["name"])
		d.checkHold(&p, values)
		if p.IP.Addr().Is6() && p.MTU < minMTUIPv6 {
			d.fail(values["ip"], "write an mtu of at least 1280, or an IPv4 address", "IPv6 cannot run over an mtu of %d", p.MTU)
		}
		f.Ports = append(f.Ports, p)
	})
	if len(f.Ports) > maxPorts {
		d.fail(n, "spread the links over several functions", "a function has at most %d ports, not %d", maxPorts, len(f.Ports))
	}
}

// ip is the address of a port and the length of its subnet's prefix.
func (d *decoder) ip(n *yaml.Node) netip.Prefix {
	const fix = `write an address with its prefix length, such as "10.0.0.1/24"`
	s, ok := d.text(n, "ip")
	if !ok {
		return netip.Prefix{}
	}
	p, err := netip.ParsePrefix(s)
	if err != nil || p.Addr().Is4In6() {
		d.fail(n, fix, "ip cannot be %s", quote(s))
		return netip.Prefix{}
	}
	if why := unusable(p); why != "" {
		d.fail(n, fix, "a port cannot have the address %q: it is %s", p.Addr(), why)
		return netip.Prefix{}
	}
	return p
}

// unusable says why no port can have an address; "" if one can.
func unusable(p netip.Prefix) string {
	a := p.Addr()
	switch {
	case a.IsUnspecified():
		return "the unspecified address"
	case a.IsLoopback():
		return "a loopback address"
	case a.IsMulticast():
		return "a multicast address"
	case p.Bits() == 0:
		return "in a subnet that is the whole Internet"
	case a == netip.AddrFrom4([4]byte{255, 255, 255, 255}):
		return "the broadcast address"
	case a.Is6() && p.Bits() < 127 && p.Masked().Addr() == a:
		return "the subnet-router anycast address (RFC 4291)"
	case !a.Is4() || p.Bits() > 30: // RFC 3021: a /31 has two hosts
		return ""
	case p.Masked().Addr() == a:
		return "the address of its subnet"
	case !p.Contains(a.Next()):
		return "the broadcast address of its subnet"
	}
	return ""
}

var macPattern = regexp.MustCompile(`^[0-9A-Fa-f]{2}(:[0-9A-Fa-f]{2}){5}$`)

// mac is a unicast Ethernet address, in lower case.
func (d *decoder) mac(n *yaml.Node) MAC {
	const fix = `write a unicast address, such as "02:00:00:00:00:01"`
	s, ok := d.text(n, "mac")
	if !ok {
		return ""
	}
	hw, err := net.ParseMAC(s)
	switch {
	case err != nil || !macPattern.MatchString(s):
		d.fail(n, fix, "mac cannot be %s", quote(s))
	case hw[0]&1 != 0:
		d.fail(n, fix, "mac cannot be %s: it is a multicast address", quote(s))
	case hw.String() == "00:00:00:00:00:00":
		d.fail(n, fix, "mac cannot be zero")
	default:
		return MAC(hw.String())
	}
	return ""
}
