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
	parse.NameField("name", "a link's name", "The name of the link in plans, verdicts and reports.",
		func(l *Link) *string { return &l.Name }).As(schema.Ref("name")).Must(),
	{Name: "ends", Required: true, Doc: "The ends that the link joins, at least two: ports, each on this link only, and at most one uplink. At least one must be a port.",
		Form: schema.List(schema.Ref("end"), 2, 0), Decode: decodeEnds},
	parse.ChoiceField("transport", "How the link is realised. With `auto` the planner takes the host's fastest transport that the isolation, the faces and the ends allow. `dray doctor` lists the transports that have a driver; the planner refuses any other name.",
		Transports, func(l *Link) *string { return &l.Transport }).Default("auto"),
	parse.ChoiceField("isolation", "What the ends may share with each other; see the isolation levels.",
		isolations, func(l *Link) *Isolation { return &l.Isolation }).Default("link"),
	parse.ChoiceField("forwarding", "How an Open vSwitch with DPDK (ovs-dpdk, ovs-dray, ovs-dpdk-vxlan) or a VPP (vpp, vpp-memif) decides where a packet goes: `direct`, from either of two ends to the other, whatever its addresses; `learning`, by the addresses seen at each end. Default: direct between two ends, learning between more. No other transport has this choice.",
		Forwardings, func(l *Link) *Forwarding { return &l.Forwarding }),
	parse.ChoiceField("traffic", "The protocol that min_bitrate and max_bitrate are measured with: `udp`, the received payload of datagrams, as in user planes such as F1-U; `tcp`, the goodput of one TCP stream, between network interfaces only. The two can differ several times over. Latency, variation, loss and packet rate are always measured with UDP.",
		traffics, func(l *Link) *Traffic { return &l.Traffic }).Default("udp"),
	parse.IntegerField("frame", "The length of the UDP frames that bitrate, latency and loss are measured with, in bytes with FCS: the payload plus 46 bytes, or 66 over IPv6. At most the mtu of the link's ports plus 18. Default: frames that fill the mtu.",
		MinFrame, MaxFrame, func(l *Link) *int { return &l.Frame }),
	{
		Name: "load",
		Doc:  "The traffic in one direction while latency is measured. Default: 10 % of min_bitrate. With 0bps latency is measured on an idle link.",
		Form: schema.Ref("bitrate"),
		Decode: func(d *parse.Decoder, n *yaml.Node, l *Link) {
			l.Load, l.HasLoad = parse.Quantity(d, n, "load", units.ParseBitrate)
		},
	},
	parse.ReadField("fronthaul", "The traffic while latency, loss and on_time are measured, instead of a load: the downlink of an O-RAN fronthaul, in eCPRI frames, symbol by symbol. Each end sends it in turn, as if it were the O-DU. The ports' mtu must hold its frames: 7664 with 273 PRBs.",
		schema.Ref("fronthaul"), decodeFronthaul, func(l *Link) **Fronthaul { return &l.Fronthaul }),
	parse.ReadField("fapi", "The traffic while latency, loss and on_time are measured, instead of a load: two 5G FAPI messages for each slot, as from a MAC to its PHY. Each end sends them in turn, as if it were the MAC. Needs messages, whose size must hold them, and so native ports.",
		schema.Ref("fapi"), decodeFAPI, func(l *Link) **FAPI { return &l.FAPI }),
	{Name: "requires", Doc: "What the link must do.", Form: schema.Ref("requires"), Decode: decodeRequires},
	parse.ReadField("qos", "A queueing discipline for the egress of every port of the link without one of its own.",
		schema.Ref("qos"), decodeQdisc, func(l *Link) **Qdisc { return &l.QoS }),
	{Name: "messages", Doc: "Buffers for messages longer than a packet, such as FAPI messages or IQ samples, in addition to the packets. Only shared memory between native ports supports them.",
		Form: schema.Ref("messages"), Decode: decodeMessages},
}

var requiresFields = []parse.Field[Requires]{
	parse.PositiveField("latency", "The largest one-way latency at the percentile, judged in the worst direction. Default: that of the ends' split, if they have one.",
		schema.Ref("duration"), units.ParseDuration, func(r *Requires) *units.Duration { return &r.Latency }),
	parse.QuantityField("percentile", "The percentile at which latency and packet_delay_variation are judged; it needs one of them, or a split. A percentile needs ten samples beyond it: 99.99 needs at least 100 000 packets.",
		schema.Ref("percentile").Default(99), units.ParsePercentile, func(r *Requires) *units.Percentile { return &r.Percentile }),
	parse.PositiveField("packet_delay_variation", "The largest delay above the smallest delay, D(i)−Dmin, at the percentile (RFC 5481).",
		schema.Ref("duration"), units.ParseDuration, func(r *Requires) *units.Duration { return &r.PDV }),
	parse.ReadField("packet_loss_ratio", "The largest proportion of packets that may be lost. No measurement can prove 0, so it is refused; a ratio r needs at least 3/r packets without loss.",
		schema.Ref("ratio"), decodeLossRatio, func(r *Requires) **units.Ratio { return &r.LossRatio }),
	parse.ReadField("on_time", "The least proportion of a load's messages that must arrive within their receive windows, such as \"99.999%\": those of O-RAN.WG4.CUS for a fronthaul, and from the beginning of the slot for FAPI messages. Needs fronthaul or fapi; a share of 99.999 % needs at least 300 000 messages.",
		schema.Ref("ratio"), decodeOnTime, func(r *Requires) *units.Ratio { return &r.OnTime }),
	parse.PositiveField("min_bitrate", "The minimum throughput in each direction. Default: that of the ends' split, if they have one.",
		schema.Ref("bitrate"), units.ParseBitrate, func(r *Requires) *units.Bitrate { return &r.MinBitrate }),
	parse.ValueField("max_bitrate", "The maximum throughput in each direction. A token bucket at every port enforces it; it is then measured. At least 8bps, and not below min_bitrate.",
		schema.Ref("bitrate"), DecodeShapedRate, func(r *Requires) *units.Bitrate { return &r.MaxBitrate }),
	parse.PositiveField("packet_rate", "The minimum packet rate in each direction, in frames of 64 bytes, or 84 over IPv6.",
		schema.Ref("packetrate"), units.ParsePacketRate, func(r *Requires) *units.PacketRate { return &r.PacketRate }),
	parse.IntegerField("mtu", "The size of an IP packet, in bytes, that must pass without fragmentation. At most the mtu of the link's ports.",
		minMTU, maxMTU, func(r *Requires) *int { return &r.MTU }).As(schema.Ref("mtu")),
}

var uplinkFields = []parse.Field[End]{
	parse.ReadField("uplink", "The name of the host interface. A port gets no address that the host itself or a port of another running chain has there, or on the bridge or bond above it.",
		schema.Pattern(interfacePattern.String()).With("not", schema.Schema{{Name: "pattern", Value: "^[.]+$"}}), decodeInterfaceName, func(e *End) *string { return &e.Uplink }).Must(),
}

func decodeEnds(d *parse.Decoder, n *yaml.Node, l *Link) {
	ports := 0
	d.List(n, "ends", func(item *yaml.Node) {
		e := End{Pos: d.Position(item)}
		if parse.Deref(item).Kind == yaml.MappingNode {
			parse.Object(d, item, "an uplink", uplinkFields, &e)
		} else {
			decodePortEnd(d, item, "a link end", `write "function.port", or {uplink: eth0} for a host interface`, &e)
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

// decodePortEnd reads "function.port"; what and fix are for errors. Text without both parts leaves e empty.
func decodePortEnd(d *parse.Decoder, n *yaml.Node, what, fix string, e *End) {
	s, ok := d.Text(n, what)
	if !ok {
		return
	}
	function, port, dotted := strings.Cut(s, ".")
	if !dotted || function == "" || port == "" {
		d.Fail(n, fix, "%s is not %s", parse.Quote(s), what)
		return
	}
	e.Function, e.Port = function, port
}

func decodeRequires(d *parse.Decoder, n *yaml.Node, l *Link) {
	r := &l.Requires
	values := parse.Object(d, n, "requires", requiresFields, r)
	r.Pos = d.Positions(values)
	delayed := values["latency"] != nil || values["packet_delay_variation"] != nil
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
