// SPDX-License-Identifier: Apache-2.0

package chain

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/drayage/dray/internal/spec/parse"
	"github.com/drayage/dray/internal/spec/units"
)

// checker compares the parts of a chain with each other.
type checker struct {
	*parse.Decoder
	ports map[End]*member       // by Function and Port
	names []string              // of all ports: "function.port"
	on    map[string]*addresses // by uplink
}

// addresses are those of ports that reach each other.
type addresses struct {
	ips  map[netip.Addr]*member
	macs map[MAC]*member
}

// member is a port and the link that it is on.
type member struct {
	function *Function
	port     *Port
	link     *Link
}

// check reports every fault between the parts of c.
func check(d *parse.Decoder, c *Chain) {
	k := &checker{Decoder: d, ports: map[End]*member{}, on: map[string]*addresses{}}
	for i := range c.Functions {
		f := &c.Functions[i]
		for j := range f.Ports {
			end := End{Function: f.Name, Port: f.Ports[j].Name}
			if k.ports[end] == nil {
				k.ports[end] = &member{function: f, port: &f.Ports[j]}
				k.names = append(k.names, end.String())
			}
		}
	}
	k.checkHosts(c)
	k.checkSplits(c)
	for i := range c.Links {
		members := k.join(c, &c.Links[i])
		k.checkMTU(&c.Links[i], members)
		k.checkTraffic(&c.Links[i], members)
		k.checkAddresses(&c.Links[i], members)
		k.checkQdiscs(&c.Links[i], members)
	}
	k.checkPaths(c)
	for i := range c.Functions {
		k.checkSubnets(&c.Functions[i])
		k.checkTuns(&c.Functions[i])
	}
	if !d.Failed() {
		k.expand(c)
	}
}

// join finds the ports of a link's ends, which no other link may have.
func (k *checker) join(c *Chain, l *Link) []*member {
	var members []*member
	uplinks := map[string]bool{}
	for _, e := range l.Ends {
		if e.IsUplink() {
			if uplinks[e.Uplink] {
				k.FailAt(e.Pos, "remove one of the two", "the link names the uplink %s twice", parse.Quote(e.Uplink))
			}
			uplinks[e.Uplink] = true
			continue
		}
		m := k.ports[End{Function: e.Function, Port: e.Port}]
		switch {
		case e.Port == "": // reported by the decoder
		case m == nil:
			k.dangling(c, e)
		case m.link == l:
			k.FailAt(e.Pos, "name each port once", "the link names the port %s twice", e)
		case m.link != nil:
			k.FailAt(e.Pos, fmt.Sprintf("give %s another port for this link", parse.Quote(e.Function)),
				"the port %s is already on the link in line %d", e, m.link.Pos.Line)
		default:
			m.link = l
			members = append(members, m)
		}
	}
	return members
}

// dangling reports an end that names no port, with the nearest port name.
func (k *checker) dangling(c *Chain, e End) {
	if k.Full() {
		k.FailAt(e.Pos, "", "%s is not a port", e) // only counted
		return
	}
	known := k.names
	var own []string
	for _, name := range k.names {
		if strings.HasPrefix(name, e.Function+".") {
			own = append(own, name)
		}
	}
	if own != nil {
		known = own
	}
	fix := fmt.Sprintf("add a port %s to the function %s", parse.Quote(e.Port), parse.Quote(e.Function))
	if near := parse.Nearest(e.String(), known); near != "" {
		fix = fmt.Sprintf("the nearest port is %q", near)
	}
	k.FailAt(e.Pos, fix, "there is no port %s", parse.Quote(e.String()))
}

// fieldAt is the position of a port's field, or of the port for a default.
func fieldAt(p *Port, field string) parse.Position {
	if at, ok := p.FieldPos[field]; ok {
		return at
	}
	return p.Pos
}

// checkMTU compares the MTUs of a link's ports with each other, with the requirement
// and with the transport's maximum.
func (k *checker) checkMTU(l *Link, members []*member) {
	for i, m := range members {
		at := fieldAt(m.port, "mtu")
		if limit := transportMTU[l.Transport]; limit > 0 && m.port.MTU > limit {
			k.FailAt(at, fmt.Sprintf("lower it to %d, or choose another transport", limit),
				"the transport %s of the link %s carries an mtu of at most %d, not %d", l.Transport, parse.Quote(l.Name), limit, m.port.MTU)
		}
		if i == 0 {
			continue
		}
		if first := members[0]; m.port.MTU != first.port.MTU {
			k.FailAt(at, "give both ports the same", "mtu %d of %s differs from mtu %d of %s on the same link",
				m.port.MTU, m, first.port.MTU, first)
		}
	}
	if len(members) == 0 || l.Requires.MTU == 0 {
		return
	}
	if m := members[0]; m.port.MTU < l.Requires.MTU {
		k.FailAt(l.Requires.Pos["mtu"], fmt.Sprintf(`write "mtu: %d" at the link's ports`, l.Requires.MTU),
			"the link requires an mtu of %d, but its port %s has %d", l.Requires.MTU, m, m.port.MTU)
	}
}

// frameExtra is the size of an Ethernet frame beyond its packet: header and FCS.
// smallestFrame6 is the shortest frame over IPv6 that holds the generator's stamp.
const frameExtra, smallestFrame6 = 18, 84

// checkTraffic compares the traffic of a link with its ports.
func (k *checker) checkTraffic(l *Link, members []*member) {
	for _, m := range members {
		if l.Traffic == TrafficTCP && m.port.Face != FaceNetdev {
			k.FailAt(l.FieldPos["traffic"], "write traffic: udp", "the port %s has face: %s, which has no TCP", m, m.port.Face)
			break
		}
	}
	if len(members) == 0 {
		return
	}
	k.checkNative(l, members)
	port := members[0].port
	if l.Fronthaul != nil && port.MTU < l.Fronthaul.MTU() {
		k.FailAt(l.FieldPos["fronthaul"], fmt.Sprintf(`write "mtu: %d" at the link's ports, or a smaller prb`, l.Fronthaul.MTU()),
			"the messages of %d PRBs do not fit the mtu %d of %s", l.Fronthaul.PRB, port.MTU, members[0])
	}
	if l.Frame == 0 {
		return
	}
	if most := port.MTU + frameExtra; l.Frame > most {
		k.FailAt(l.FieldPos["frame"], fmt.Sprintf("write at most %d, or raise the mtu of the link's ports", most),
			"a frame of %d bytes does not fit the mtu %d of %s", l.Frame, port.MTU, members[0])
	}
	if l.Frame < smallestFrame6 && port.IP.IsValid() && port.IP.Addr().Is6() {
		k.FailAt(l.FieldPos["frame"], fmt.Sprintf("write at least %d", smallestFrame6), "a frame of %d bytes is too short over IPv6", l.Frame)
	}
}

// checkNative refuses FAPI messages at a port that has no message buffers.
func (k *checker) checkNative(l *Link, members []*member) {
	for _, m := range members {
		if l.FAPI != nil && m.port.Face != FaceNative {
			k.FailAt(l.FieldPos["fapi"], fmt.Sprintf("write face: %s at both ports of the link", FaceNative), "the port %s has face: %s, which has no FAPI messages", m, m.port.Face)
			break
		}
	}
}

func (m *member) String() string { return m.function.Name + "." + m.port.Name }

// reached are the addresses of the ports that a link reaches beyond its own: of the links
// before it with the same uplink.
func (k *checker) reached(l *Link) *addresses {
	none := &addresses{map[netip.Addr]*member{}, map[MAC]*member{}}
	i := slices.IndexFunc(l.Ends, End.IsUplink)
	if i < 0 {
		return none
	}
	name := l.Ends[i].Uplink
	if k.on[name] == nil {
		k.on[name] = none
	}
	return k.on[name]
}

// checkAddresses compares the addresses of a link's ports.
func (k *checker) checkAddresses(l *Link, members []*member) {
	var first *member
	on := k.reached(l)
	same := func(other *member) string {
		if other.link != l {
			return "uplink"
		}
		return "link"
	}
	for _, m := range members {
		if m.port.MAC != "" {
			if other := on.macs[m.port.MAC]; other != nil {
				k.FailAt(fieldAt(m.port, "mac"), "change one of the two", "the port %s on the same %s has the same mac", other, same(other))
			}
			on.macs[m.port.MAC] = m
		}
		ip := m.port.IP
		if !ip.IsValid() {
			continue
		}
		if first == nil {
			first = m
		}
		other := on.ips[ip.Addr()]
		on.ips[ip.Addr()] = m
		switch at := fieldAt(m.port, "ip"); {
		case other != nil:
			k.FailAt(at, "change one of the two", "the port %s on the same %s has the same ip, %s", other, same(other), ip.Addr())
		case ip.Masked() != first.port.IP.Masked():
			k.FailAt(at, "put both into one subnet", "ip %s is in another subnet than %s of %s on the same link", ip, first.port.IP, first)
		}
	}
}

// checkQdiscs compares the disciplines of a link and its ports with the link's MTU and
// limit.
func (k *checker) checkQdiscs(l *Link, members []*member) {
	if len(members) > 0 {
		k.checkBurst(l.QoS, members[0].port.MTU)
	}
	for _, m := range members {
		k.checkBurst(m.port.QoS, m.port.MTU)
		if m.port.QoS != nil && l.Requires.MaxBitrate > 0 {
			checkShaping(k.Decoder, m.port.QoS, l.Requires.MaxBitrate)
		}
	}
}

// checkBurst finds a bucket smaller than one full-size packet.
func (k *checker) checkBurst(q *Qdisc, mtu int) {
	if q == nil {
		return
	}
	k.checkBucket(q.Burst, q.FieldPos["burst"], mtu)
	for i := range q.Classes {
		k.checkBucket(q.Classes[i].Burst, q.Classes[i].FieldPos["burst"], mtu)
	}
}

func (k *checker) checkBucket(burst units.Bytes, at parse.Position, mtu int) {
	const ethernetHeader = 14
	if least := units.Bytes(mtu + ethernetHeader); burst > 0 && burst < least {
		k.FailAt(at, fmt.Sprintf("raise it to %d or more", least),
			"burst %s is less than one frame, so packets of the full mtu would never pass", burst)
	}
}

// checkSubnets finds two ports of a function on different links whose subnets overlap:
// the kernel could send through either.
func (k *checker) checkSubnets(f *Function) {
	if len(f.Ports) > maxPorts {
		return // reported by the decoder
	}
	for i := range f.Ports {
		p := &f.Ports[i]
		for j := range f.Ports[:i] {
			q := &f.Ports[j]
			if !p.IP.IsValid() || !q.IP.IsValid() || !p.IP.Overlaps(q.IP) || k.sameLink(f, p, q) {
				continue
			}
			k.FailAt(fieldAt(p, "ip"), "give each link a subnet of its own",
				"the subnet of ip %s overlaps that of %s at the port %s of the same function", p.IP, q.IP, parse.Quote(q.Name))
			break
		}
	}
}

func (k *checker) sameLink(f *Function, p, q *Port) bool {
	a := k.ports[End{Function: f.Name, Port: p.Name}]
	b := k.ports[End{Function: f.Name, Port: q.Name}]
	return a != nil && b != nil && a.link != nil && a.link == b.link
}
