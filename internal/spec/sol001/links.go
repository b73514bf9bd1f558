// SPDX-License-Identifier: Apache-2.0

package sol001

import (
	"fmt"
	"math"
	"net/netip"

	"github.com/drayage/dray/internal/spec/chain"
	"github.com/drayage/dray/internal/spec/parse"
	"github.com/drayage/dray/internal/spec/units"
	"go.yaml.in/yaml/v3"
)

// Limits of a chain file's MTU, in bytes.
const (
	minMTU     = 68
	minMTUIPv6 = 1280
	maxMTU     = 65535
)

// SOL001 wants a latency, a variation and a maximum of the bitrate of each virtual link
// that states any. The largest values stand for none.
const (
	noDuration = units.Duration(math.MaxInt64 / 1_000_000_000 * 1_000_000_000) // whole seconds
	noBitrate  = math.MaxInt64
)

// link is a virtual link.
type link struct {
	node    string
	key     *yaml.Node
	in      string
	name    string
	comment string
	least   *object // min_bitrate_requirements
	most    *object // max_bitrate_requirements
	mtu     int
	cidr    netip.Prefix
	cidrAt  *yaml.Node
	members []*port // in the order of the descriptor

	requires chain.Requires
	ends     []string // "function.port", or "" for the uplink
	uplink   string   // the host interface, or ""
}

// virtualLink reads a virtual link of a VNFD or an NSD.
func (d *draft) virtualLink(key *yaml.Node) {
	o := d.node(key, "virtual link")
	l := &link{node: key.Value, key: key, in: o.in}
	d.links[key.Value] = l
	d.linkOrder = append(d.linkOrder, l)
	p := o.object("properties")
	l.comment = p.text("description")
	connectivity := p.object("connectivity_type")
	d.layers(connectivity)
	if n := connectivity.value("flow_pattern"); n != nil && n.Value == "tree" {
		delete(connectivity.seen, "flow_pattern")
	}
	profile := p.object("vl_profile")
	l.least, l.most = profile.object("min_bitrate_requirements"), profile.object("max_bitrate_requirements")
	d.qos(l, profile.object("qos"))
	for _, item := range profile.list("virtual_link_protocol_data") {
		d.protocolData(l, d.open(item, l.in))
	}
}

// qos reads the bounds of delay and loss.
func (d *draft) qos(l *link, q *object) {
	r := &l.requires
	r.Latency = d.bound(q, "latency")
	r.PDV = d.bound(q, "packet_delay_variation")
	if r.Latency > 0 || r.PDV > 0 {
		d.note(q.node, l.in, "set requires.percentile to judge another", "the bounds of delay are largest values; a chain judges them at a percentile, by default 99")
	}
	ratio, ok := q.float("packet_loss_ratio")
	switch {
	case !ok || ratio == 1: // every loss is allowed
	case ratio > 1:
		d.note(q.values["packet_loss_ratio"], l.in, "", "packet_loss_ratio cannot be above 1")
	case ratio == 0:
		d.note(q.values["packet_loss_ratio"], l.in, "choose the largest ratio that you can accept, such as 1e-5", "no measurement can prove a packet_loss_ratio of 0, so the chain requires none")
	default:
		v := units.Ratio(ratio)
		r.LossRatio = &v
	}
}

// bound is the largest delay of a field, or 0 for none.
func (d *draft) bound(q *object, field string) units.Duration {
	v, ok := q.quantity(field, readTime)
	if !ok || units.Duration(v) >= noDuration {
		return 0
	}
	if v == 0 {
		d.note(q.values[field], q.in, "", "no link has a %s of 0, so the chain requires none", field)
	}
	return units.Duration(v)
}

// protocolData reads the MTU and subnet of a virtual link.
func (d *draft) protocolData(l *link, o *object) {
	o.skip("associated_layer_protocol")
	l2 := o.object("l2_protocol_data")
	if v, ok := l2.integer("mtu"); ok {
		l.mtu = int(d.within(l2, "mtu", v, minMTU, maxMTU))
	}
	if n := l2.value("vlan_transparent"); n != nil && n.Value != "false" {
		delete(l2.seen, "vlan_transparent")
	}
	l3 := o.object("l3_protocol_data")
	if n := l3.value("cidr"); n != nil {
		prefix, err := netip.ParsePrefix(n.Value)
		if err != nil || l.cidr.IsValid() {
			d.note(n, l.in, "write one subnet, such as 10.0.0.0/24", "cidr cannot be %s", parse.Quote(n.Value))
		} else {
			l.cidr, l.cidrAt = prefix.Masked(), l3.values["cidr"]
		}
	}
	if v := l3.text("ip_version"); v != "" && l.cidr.IsValid() && (v == "ipv6") != l.cidr.Addr().Is6() {
		delete(l3.seen, "ip_version")
	}
	if n := l3.value("dhcp_enabled"); n != nil && n.Value != "false" {
		delete(l3.seen, "dhcp_enabled")
	}
}

// bitrates reads the requirements of a link whose ends are known. SOL001 has one rate
// for a line, and for other patterns one for the whole and one for each branch.
func (d *draft) bitrates(l *link) {
	many := len(l.ends) > 2
	least, most := d.rate(l.least, many), d.rate(l.most, many)
	if most >= noBitrate {
		most = 0
	}
	r := &l.requires
	r.MinBitrate = least
	switch {
	case most == 0 && zero(l.most):
		d.note(l.most.node, l.in, "", "a largest bitrate of 0 would let nothing pass, so the chain has none")
	case most == 0:
	case most < least || most < 8:
		d.note(l.most.node, l.in, "", "a largest bitrate of %s is below the smallest, or too small to shape, so the chain has none", most)
	default:
		r.MaxBitrate = most
	}
}

func zero(o *object) bool { return scalarOf(o.node, "root") == "0" || scalarOf(o.node, "leaf") == "0" }

// rate is the bitrate that holds between two ports. What the descriptor says of the
// whole link, or of branches of a line, stays unread.
func (d *draft) rate(o *object, many bool) units.Bitrate {
	root, leaf := "root", "leaf"
	if many && o.values[leaf] != nil {
		root, leaf = leaf, root
	}
	v, ok := o.integer(root)
	if !ok {
		return 0
	}
	if n := o.values[leaf]; n != nil && o.resolve(n, o.in) != nil && o.resolve(n, o.in).Value == fmt.Sprint(v) {
		o.skip(leaf)
	}
	if many && root == "root" && v > 0 && v < noBitrate {
		d.note(o.values[root], o.in, "give it a leaf, the bitrate of each branch", "root is the capacity of the whole link; the chain requires it between each two ports")
	}
	return units.Bitrate(v)
}
