// SPDX-License-Identifier: Apache-2.0

package chain

import (
	"math"
	"net/netip"

	"github.com/drayage/dray/internal/spec/parse"
	"github.com/drayage/dray/internal/spec/schema"
	"go.yaml.in/yaml/v3"
)

const maxTunnels, maxQFI = 1_000_000, 63

var gtpuFields = []parse.Field[GTPU]{
	parse.ValueField("at", "The end of the path at which packets are in tunnels.", schema.Enum(sides), decodeSide, func(g *GTPU) *Side { return &g.At }).Must(),
	parse.ReadField("from", "The outer IPv4 address from which that end sends, such as that of a gNB.", schema.Pattern(`^[0-9.]+$`), decodeOuter, func(g *GTPU) *netip.Addr { return &g.From }).Must(),
	parse.ReadField("to", "The outer IPv4 address to which it sends, such as that of a UPF.", schema.Pattern(`^[0-9.]+$`), decodeOuter, func(g *GTPU) *netip.Addr { return &g.To }).Must(),
	parse.IntegerField("teid", "The TEID of the first tunnel in that direction; the others count up.", 1, math.MaxUint32, func(g *GTPU) *int { return &g.TEID }).Default(1),
	parse.IntegerField("tunnels", "How many tunnels, each of its own user. The first user's address is that of the end's port, the others count up. In the other direction packets go to the first 256 users.",
		1, maxTunnels, func(g *GTPU) *int { return &g.Tunnels }).Default(1),
	parse.ChoiceField("pdu", "The direction in the PDU session container (TS 38.415) of packets from that end: `up`, as a gNB sends them, or `down`, as a UPF does. Default: no container.",
		[]PDU{PDUUp, PDUDown}, func(g *GTPU) *PDU { return &g.PDU }),
	parse.IntegerField("qfi", "The QoS flow in the container; needs pdu.", 0, maxQFI, func(g *GTPU) *int { return &g.QFI }),
}

var sides = []Side{SideFrom, SideTo}

// decodeSide names the value in errors: the field's name is no noun.
func decodeSide(d *parse.Decoder, n *yaml.Node, _ string) (Side, bool) {
	return parse.Choice(d, n, "end of the path", sides)
}

func decodeOuter(d *parse.Decoder, n *yaml.Node) netip.Addr {
	text, ok := d.Text(n, "an address")
	if !ok {
		return netip.Addr{}
	}
	a, err := netip.ParseAddr(text)
	if err != nil || !a.Is4() || a.IsUnspecified() || a.IsMulticast() || a.IsLoopback() || a == netip.AddrFrom4([4]byte{255, 255, 255, 255}) {
		d.Fail(n, `write the address of one host: "198.18.0.1"`, "%s is no IPv4 address of a host", parse.Quote(text))
		return netip.Addr{}
	}
	return a
}

func decodeGTPU(d *parse.Decoder, n *yaml.Node, p *Path) {
	g := &GTPU{TEID: 1, Tunnels: 1}
	values := parse.Object(d, n, "gtpu", gtpuFields, g)
	if values["qfi"] != nil && g.PDU == "" {
		d.Fail(values["qfi"], "add pdu, or remove it", "without a PDU session container there is no qfi")
	}
	if g.From == g.To && g.From.IsValid() {
		d.Fail(values["to"], "write the address of the function that ends the tunnels", "the tunnels lead from %s to itself", g.From)
	}
	if last := g.TEID + g.Tunnels - 1; last > math.MaxUint32 {
		d.Fail(parse.Deref(n), "lower teid or tunnels", "the TEID of the last tunnel, %d, has more than 32 bits", last)
	}
	p.GTPU = g
}

// checkGTPU compares the tunnels with the port at their end.
func (k *checker) checkGTPU(p *Path) {
	if p.GTPU == nil {
		return
	}
	end := p.From
	if p.GTPU.At == SideTo {
		end = p.To
	}
	m := k.ports[End{Function: end.Function, Port: end.Port}]
	if m != nil && m.port.IP.IsValid() && !m.port.IP.Addr().Is4() {
		k.FailAt(p.FieldPos["gtpu"], "give the port an IPv4 address: that of the first user", "the port %s has an IPv6 address, and packets in tunnels are of IPv4", end)
	}
	if len(p.Steps) < 2 {
		k.FailAt(p.FieldPos["gtpu"], "name in through the function that takes packets out of the tunnels", "no function of the path ends its tunnels")
	}
}
