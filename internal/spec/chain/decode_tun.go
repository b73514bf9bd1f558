// SPDX-License-Identifier: Apache-2.0

package chain

import (
	"net/netip"

	"github.com/drayage/dray/internal/spec/parse"
	"github.com/drayage/dray/internal/spec/schema"
	"go.yaml.in/yaml/v3"
)

// maxTuns bounds the memory of packets that no program reads: 500 of at most 64 KiB each,
// which the kernel counts against no limit.
const maxTuns = 4

var tunFields = []parse.Field[Tun]{
	parse.ReadField("name", "The name of the interface. The names lo, all and default are reserved by the kernel.",
		schema.Pattern(portPattern.String()).With("not", schema.Schema{{Name: "enum", Value: []string{"lo", "all", "default"}}}), decodePortName, func(t *Tun) *string { return &t.Name }).Must(),
	parse.ReadField("ip", "The address of the function on the interface and the length of its subnet's prefix, such as \"172.16.0.1/24\": packets to other addresses of the subnet go to the program.",
		schema.Pattern(`^[0-9A-Fa-f:.]+/[0-9]{1,3}$`), decodeIp, func(t *Tun) *netip.Prefix { return &t.IP }).Must(),
	parse.IntegerField("mtu", "The largest IP packet that the interface passes, in bytes; IPv6 needs 1280.",
		minMTU, maxMTU, func(t *Tun) *int { return &t.MTU }).As(schema.Ref("mtu")).Default(1500),
}

func decodeTuns(d *parse.Decoder, n *yaml.Node, f *Function) {
	names := parse.NewUnique("TUN interfaces of one function")
	d.List(n, "tuns", func(item *yaml.Node) {
		t := Tun{MTU: defaultMTU, Pos: d.Position(item)}
		values := parse.Object(d, item, "a TUN interface", tunFields, &t)
		t.FieldPos = d.Positions(values)
		names.Add(d, t.Name, values["name"])
		if t.IP.Addr().Is6() && t.MTU < minMTUIPv6 {
			d.Fail(values["ip"], "write an mtu of at least 1280, or an IPv4 address", "IPv6 cannot run over an mtu of %d", t.MTU)
		}
		f.Tuns = append(f.Tuns, t)
	})
	if len(f.Tuns) > maxTuns {
		d.Fail(n, "use several functions", "a function has at most %d TUN interfaces, not %d", maxTuns, len(f.Tuns))
	}
}

// checkTuns finds TUN interfaces whose name or subnet another interface of the function
// has.
func (k *checker) checkTuns(f *Function) {
	if len(f.Tuns) > maxTuns || len(f.Ports) > maxPorts {
		return // reported by the decoder
	}
	for i, t := range f.Tuns {
		for _, p := range f.Ports {
			if t.Name != "" && t.Name == p.Name {
				k.FailAt(t.FieldPos["name"], "choose another", "the TUN interface %s has the name of a port of the same function", parse.Quote(t.Name))
			}
			k.checkTunSubnet(t, p.Name, p.IP)
		}
		for _, other := range f.Tuns[:i] {
			k.checkTunSubnet(t, other.Name, other.IP)
		}
	}
}

func (k *checker) checkTunSubnet(t Tun, name string, ip netip.Prefix) {
	if t.IP.IsValid() && ip.IsValid() && t.IP.Overlaps(ip) {
		k.FailAt(t.FieldPos["ip"], "give it a subnet of its own",
			"the subnet of ip %s overlaps that of %s at %s of the same function", t.IP, ip, parse.Quote(name))
	}
}
