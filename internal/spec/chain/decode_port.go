// SPDX-License-Identifier: Apache-2.0

package chain

import (
	"net"
	"net/netip"
	"regexp"

	"github.com/drayage/dray/internal/spec/parse"
	"github.com/drayage/dray/internal/spec/schema"
	"go.yaml.in/yaml/v3"
)

var portFields = []parse.Field[Port]{
	parse.ReadField("name", "The name of the port, and of the network interface that the function sees. The names lo, all and default are reserved by the kernel.",
		schema.Pattern(portPattern.String()).With("not", schema.Schema{{Name: "enum", Value: []string{"lo", "all", "default"}}}), decodePortName, func(p *Port) *string { return &p.Name }).Must(),
	parse.ChoiceField("face", "How the function sees the port: `netdev`, a network interface; `native`, a socket at /run/dray/ports/NAME that libdray opens (with the runtimes process and external, in the directory that DRAY_PORTS or the state directory names); `dpdk`, a device (ethdev) of the function's own DPDK application. Its command must contain the argument $(DRAY_EAL). The arguments of EAL replace it, with one --vdev for each such port in the order of this file. Two native or dpdk ports on a link share memory if its isolation permits that. Otherwise they get packet sockets on an interface of the link's transport, and the function needs no capability.",
		Faces, func(p *Port) *Face { return &p.Face }).Default("netdev"),
	parse.ReadField("ip", "The address of the port and the length of its subnet's prefix, such as \"10.0.0.1/24\" or \"fd00::1/64\". All ports of a link must be in one subnet. Default: the planner assigns an address.",
		schema.Pattern(`^[0-9A-Fa-f:.]+/[0-9]{1,3}$`), decodeIp, func(p *Port) *netip.Prefix { return &p.IP }),
	parse.ReadField("mac", "The Ethernet address, which must be unicast. By default the planner derives it from the names of chain, function and port, so that every run has the same one.",
		schema.Pattern(`^[0-9A-Fa-f][02468ACEace](:[0-9A-Fa-f]{2}){5}$`), decodeMac, func(p *Port) *MAC { return &p.MAC }),
	parse.IntegerField("mtu", "The largest IP packet that the port passes, in bytes. It must be equal for all ports of a link; IPv6 needs 1280.",
		minMTU, maxMTU, func(p *Port) *int { return &p.MTU }).As(schema.Ref("mtu")).Default(1500),
	parse.IntegerField("queues", "The number of receive queues, and also of transmit queues.",
		1, maxQueues, func(p *Port) *int { return &p.Queues }).Default(1),
	{Name: "hold", Doc: "How many of its peer's buffers a native or dpdk port may keep. By default all of them; then a port that returns none stops its incoming traffic.",
		Form: schema.Ref("hold"), Decode: decodeHold},
	{
		Name: "qos",
		Doc:  "A queueing discipline for the egress of this port, in place of the link's.",
		Form: schema.Ref("qos"),
		Decode: func(d *parse.Decoder, n *yaml.Node, p *Port) {
			p.QoS = decodeQdisc(d, n)
			refuseAt(d, p.QoS, "a port's own qos shapes what the port sends: only a link's qos can be at the switch")
		},
	},
}

func decodePorts(d *parse.Decoder, n *yaml.Node, f *Function) {
	names := parse.NewUnique("ports of one function")
	d.List(n, "ports", func(item *yaml.Node) {
		p := Port{Face: FaceNetdev, MTU: defaultMTU, Queues: 1, Pos: d.Position(item)}
		values := parse.Object(d, item, "a port", portFields, &p)
		p.FieldPos = d.Positions(values)
		names.Add(d, p.Name, values["name"])
		checkHold(d, &p, values)
		if p.IP.Addr().Is6() && p.MTU < minMTUIPv6 {
			d.Fail(values["ip"], "write an mtu of at least 1280, or an IPv4 address", "IPv6 cannot run over an mtu of %d", p.MTU)
		}
		f.Ports = append(f.Ports, p)
	})
	if len(f.Ports) > maxPorts {
		d.Fail(n, "spread the links over several functions", "a function has at most %d ports, not %d", maxPorts, len(f.Ports))
	}
}

// decodeIp reads a port's address and the length of its subnet's prefix.
func decodeIp(d *parse.Decoder, n *yaml.Node) netip.Prefix {
	const fix = `write an address with its prefix length, such as "10.0.0.1/24"`
	s, ok := d.Text(n, "ip")
	if !ok {
		return netip.Prefix{}
	}
	p, err := netip.ParsePrefix(s)
	if err != nil || p.Addr().Is4In6() {
		d.Fail(n, fix, "ip cannot be %s", parse.Quote(s))
		return netip.Prefix{}
	}
	if why := Unusable(p); why != "" {
		d.Fail(n, fix, "a port cannot have the address %q: it is %s", p.Addr(), why)
		return netip.Prefix{}
	}
	return p
}

// Unusable says why no port can have an address; "" if a port can.
func Unusable(p netip.Prefix) string {
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

// decodeMac reads a unicast Ethernet address, in lower case.
func decodeMac(d *parse.Decoder, n *yaml.Node) MAC {
	const fix = `write a unicast address, such as "02:00:00:00:00:01"`
	s, ok := d.Text(n, "mac")
	if !ok {
		return ""
	}
	hw, err := net.ParseMAC(s)
	switch {
	case err != nil || !macPattern.MatchString(s):
		d.Fail(n, fix, "mac cannot be %s", parse.Quote(s))
	case hw[0]&1 != 0:
		d.Fail(n, fix, "mac cannot be %s: it is a multicast address", parse.Quote(s))
	case hw.String() == "00:00:00:00:00:00":
		d.Fail(n, fix, "mac cannot be zero")
	default:
		return MAC(hw.String())
	}
	return ""
}
