// SPDX-License-Identifier: Apache-2.0

package chain

import (
	"strings"

	"github.com/drayage/dray/internal/spec/parse"
	"github.com/drayage/dray/internal/spec/schema"
	"github.com/drayage/dray/internal/spec/units"
	"go.yaml.in/yaml/v3"
)

// defaultPercentile is for latency and PDV if the file names none.
const defaultPercentile units.Percentile = 99

var linkFields = []parse.Field[Link]{
	{
		Name: "name", Required: true,
		Doc:    "The name of the link in plans, verdicts and reports.",
		Form:   schema.Ref("name"),
		Decode: func(d *parse.Decoder, n *yaml.Node, l *Link) { l.Name = d.Name(n, "a link's name") },
	},
	{
		Name: "ends", Required: true,
		Doc:    "The ends that the link joins, at least two: ports, each on this link only, and at most one uplink. At least one must be a port.",
		Form:   schema.List(schema.Ref("end"), 2, 0),
		Decode: decodeEnds,
	},
	{
		Name: "transport",
		Doc:  "How the link is realised. With `auto` the planner takes the host's fastest transport that the isolation, the faces and the ends allow. `dray doctor` lists the transports that have a driver; the planner refuses any other name.",
		Form: schema.Enum(Transports).Default("auto"),
		Decode: func(d *parse.Decoder, n *yaml.Node, l *Link) {
			if v, ok := parse.Choice(d, n, "transport", Transports); ok {
				l.Transport = v
			}
		},
	},
	{
		Name: "isolation",
		Doc:  "What the ends may share with each other; see the isolation levels.",
		Form: schema.Enum(isolations).Default("link"),
		Decode: func(d *parse.Decoder, n *yaml.Node, l *Link) {
			if v, ok := parse.Choice(d, n, "isolation", isolations); ok {
				l.Isolation = v
			}
		},
	},
	{
		Name: "forwarding",
		Doc:  "How an Open vSwitch with DPDK (ovs-dpdk, ovs-dray, ovs-dpdk-vxlan) decides where a packet goes: `direct`, from either of two ends to the other, whatever its addresses; `learning`, by the addresses seen at each end. Default: direct between two ends, learning between more. No other transport has this choice.",
		Form: schema.Enum(Forwardings),
		Decode: func(d *parse.Decoder, n *yaml.Node, l *Link) {
			l.Forwarding, _ = parse.Choice(d, n, "forwarding", Forwardings)
		},
	},
	{
		Name: "traffic",
		Doc:  "The protocol that min_bitrate and max_bitrate are measured with: `udp`, the received payload of datagrams, as in user planes such as F1-U; `tcp`, the goodput of one TCP stream, between network interfaces only. The two can differ several times over. Latency, variation, loss and packet rate are always measured with UDP.",
		Form: schema.Enum(traffics).Default("udp"),
		Decode: func(d *parse.Decoder, n *yaml.Node, l *Link) {
			if v, ok := parse.Choice(d, n, "traffic", traffics); ok {
				l.Traffic = v
			}
		},
	},
	{
		Name:   "frame",
		Doc:    "The length of the UDP frames that bitrate, latency and loss are measured with, in bytes with FCS: the payload plus 46 bytes, or 66 over IPv6. At most the mtu of the link's ports plus 18. Default: frames that fill the mtu.",
		Form:   schema.Integer(MinFrame, MaxFrame),
		Decode: func(d *parse.Decoder, n *yaml.Node, l *Link) { l.Frame, _ = d.Integer(n, "frame", MinFrame, MaxFrame) },
	},
	{
		Name: "load",
		Doc:  "The traffic in one direction while latency is measured. Default: 10 % of min_bitrate. With 0bps latency is measured on an idle link.",
		Form: schema.Ref("bitrate"),
		Decode: func(d *parse.Decoder, n *yaml.Node, l *Link) {
			l.Load, l.HasLoad = parse.Quantity(d, n, "load", units.ParseBitrate)
		},
	},
	{
		Name:   "requires",
		Doc:    "What the link must do.",
		Form:   schema.Ref("requires"),
		Decode: decodeRequires,
	},
	{
		Name:   "qos",
		Doc:    "A queueing discipline for the egress of every port of the link without one of its own.",
		Form:   schema.Ref("qos"),
		Decode: func(d *parse.Decoder, n *yaml.Node, l *Link) { l.QoS = decodeQdisc(d, n) },
	},
	{
		Name:   "messages",
		Doc:    "Buffers for messages longer than a packet, such as FAPI messages or IQ samples, in addition to the packets. Only shared memory between native ports supports them.",
		Form:   schema.Ref("messages"),
		Decode: decodeMessages,
	},
}

var requiresFields = []parse.Field[Requires]{
	{
		Name: "latency",
		Doc:  "The largest one-way latency at the percentile, judged in the worst direction.",
		Form: schema.Ref("duration"),
		Decode: func(d *parse.Decoder, n *yaml.Node, r *Requires) {
			r.Latency, _ = parse.Positive(d, n, "latency", units.ParseDuration)
		},
	},
	{
		Name: "percentile",
		Doc:  "The percentile at which latency and packet_delay_variation are judged; it needs one of them. A percentile needs ten samples beyond it: 99.99 needs at least 100 000 packets.",
		Form: schema.Ref("percentile").Default(99),
		Decode: func(d *parse.Decoder, n *yaml.Node, r *Requires) {
			r.Percentile, _ = parse.Quantity(d, n, "percentile", units.ParsePercentile)
		},
	},
	{
		Name: "packet_delay_variation",
		Doc:  "The largest delay above the smallest delay, D(i)−Dmin, at the percentile (RFC 5481).",
		Form: schema.Ref("duration"),
		Decode: func(d *parse.Decoder, n *yaml.Node, r *Requires) {
			r.PDV, _ = parse.Positive(d, n, "packet_delay_variation", units.ParseDuration)
		},
	},
	{
		Name:   "packet_loss_ratio",
		Doc:    "The largest proportion of packets that may be lost. No measurement can prove 0, so it is refused; a ratio r needs at least 3/r packets without loss.",
		Form:   schema.Ref("ratio"),
		Decode: func(d *parse.Decoder, n *yaml.Node, r *Requires) { r.LossRatio = decodeLossRatio(d, n) },
	},
	{
		Name: "min_bitrate",
		Doc:  "The minimum throughput in each direction.",
		Form: schema.Ref("bitrate"),
		Decode: func(d *parse.Decoder, n *yaml.Node, r *Requires) {
			r.MinBitrate, _ = parse.Positive(d, n, "min_bitrate", units.ParseBitrate)
		},
	},
	{
		Name: "max_bitrate",
		Doc:  "The maximum throughput in each direction. A token bucket at every port enforces it; it is then measured. At least 8bps, and not below min_bitrate.",
		Form: schema.Ref("bitrate"),
		Decode: func(d *parse.Decoder, n *yaml.Node, r *Requires) {
			r.MaxBitrate = DecodeShapedRate(d, n, "max_bitrate")
		},
	},
	{
		Name: "packet_rate",
		Doc:  "The minimum packet rate in each direction, in frames of 64 bytes, or 84 over IPv6.",
		Form: schema.Ref("packetrate"),
		Decode: func(d *parse.Decoder, n *yaml.Node, r *Requires) {
			r.PacketRate, _ = parse.Positive(d, n, "packet_rate", units.ParsePacketRate)
		},
	},
	{
		Name:   "mtu",
		Doc:    "The size of an IP packet, in bytes, that must pass without fragmentation. At most the mtu of the link's ports.",
		Form:   schema.Ref("mtu"),
		Decode: func(d *parse.Decoder, n *yaml.Node, r *Requires) { r.MTU, _ = d.Integer(n, "mtu", minMTU, maxMTU) },
	},
}

var uplinkFields = []parse.Field[End]{
	{
		Name: "uplink", Required: true,
		Doc:    "The name of the host interface.",
		Form:   schema.Pattern(interfacePattern.String()).With("not", schema.Schema{{Name: "pattern", Value: "^[.]+$"}}),
		Decode: func(d *parse.Decoder, n *yaml.Node, e *End) { e.Uplink = decodeInterfaceName(d, n) },
	},
}

func decodeEnds(d *parse.Decoder, n *yaml.Node, l *Link) {
	ports := 0
	d.List(n, "ends", func(item *yaml.Node) {
		e := End{Pos: d.Position(item)}
		if parse.Deref(item).Kind == yaml.MappingNode {
			parse.Object(d, item, "an uplink", uplinkFields, &e)
		} else {
			decodePortEnd(d, item, &e)
			ports++
		}
		l.Ends = append(l.Ends, e)
	})
	if parse.Deref(n).Kind != yaml.SequenceNode {
		return
	}
	if len(l.Ends) < 2 {
		d.Fail(parse.Deref(n), "name at least two ends", "a link joins two ends or more, not %d", len(l.Ends))
	} else if ports == 0 {
		d.Fail(parse.Deref(n), "name at least one port", "no end of the link is a function's port")
	}
}

// decodePortEnd reads "function.port". Text without both parts leaves e empty.
func decodePortEnd(d *parse.Decoder, n *yaml.Node, e *End) {
	s, ok := d.Text(n, "a link end")
	if !ok {
		return
	}
	function, port, dotted := strings.Cut(s, ".")
	if !dotted || function == "" || port == "" {
		d.Fail(n, `write "function.port", or {uplink: eth0} for a host interface`, "%s is not a link end", parse.Quote(s))
		return
	}
	e.Function, e.Port = function, port
}

func decodeRequires(d *parse.Decoder, n *yaml.Node, l *Link) {
	r := &l.Requires
	values := parse.Object(d, n, "requires", requiresFields, r)
	r.Pos = d.Positions(values)
	delayed := values["latency"] != nil || values["packet_delay_variation"] != nil
	if p := values["percentile"]; p != nil && !delayed {
		d.Fail(p, "add latency or packet_delay_variation, or remove it", "percentile has nothing to apply to")
	}
	if r.Percentile == 0 && delayed {
		r.Percentile = defaultPercentile
	}
	if r.MaxBitrate > 0 && r.MaxBitrate < r.MinBitrate {
		d.Fail(values["max_bitrate"], "raise max_bitrate or lower min_bitrate",
			"max_bitrate %s is below min_bitrate %s", r.MaxBitrate, r.MinBitrate)
	}
}

// decodeLossRatio explains why 0, the usual choice, is refused.
func decodeLossRatio(d *parse.Decoder, n *yaml.Node) *units.Ratio {
	s, ok := d.Scalar(n, "packet_loss_ratio")
	if !ok {
		return nil
	}
	if isZero(strings.TrimSuffix(s, "%")) {
		d.Fail(n, "write the largest ratio that you can accept, such as 1e-5", "a packet_loss_ratio of 0 cannot be proven by measurement")
		return nil
	}
	v, ok := parse.Quantity(d, n, "packet_loss_ratio", units.ParseRatio)
	if !ok {
		return nil
	}
	return &v
}

// isZero reports whether s is a number with only zero digits.
func isZero(s string) bool {
	mantissa, _, _ := strings.Cut(strings.ToLower(s), "e")
	return units.IsDecimal(s, true) && strings.Trim(mantissa, "0.") == ""
}

// checkForwarding refuses forwarding direct with more than two ends.
func checkForwarding(d *parse.Decoder, l *Link, values map[string]*yaml.Node) {
	if l.Forwarding == ForwardingDirect && len(l.Ends) > 2 {
		d.Fail(values["forwarding"], "write learning, or leave it out", "forwarding %s joins two ends, and the link has %d", l.Forwarding, len(l.Ends))
	}
}

// checkRates compares the rates of a link with each other.
func checkRates(d *parse.Decoder, l *Link, values map[string]*yaml.Node) {
	limit := l.Requires.MaxBitrate
	if limit == 0 {
		return
	}
	if l.Load > limit {
		d.Fail(values["load"], "lower load, or raise max_bitrate", "load %s is above max_bitrate %s, so it would be cut", l.Load, limit)
	}
	if l.QoS != nil {
		checkShaping(d, l.QoS, limit)
	}
}
