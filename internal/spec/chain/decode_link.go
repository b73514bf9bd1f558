// SPDX-License-Identifier: Apache-2.0

package chain

import (
	"strings"

	"go.yaml.in/yaml/v3"
)

// defaultPercentile is where latency and PDV are judged if the file names none.
const defaultPercentile Percentile = 99

var linkFields = []field[Link]{
	{"name", true, func(d *decoder, n *yaml.Node, l *Link) { l.Name = d.name(n, "a link's name") }},
	{"ends", true, decodeEnds},
	{"transport", false, func(d *decoder, n *yaml.Node, l *Link) {
		if v, ok := choice(d, n, "transport", transports); ok {
			l.Transport = v
		}
	}},
	{"isolation", false, func(d *decoder, n *yaml.Node, l *Link) {
		if v, ok := choice(d, n, "isolation", isolations); ok {
			l.Isolation = v
		}
	}},
	{"forwarding", false, func(d *decoder, n *yaml.Node, l *Link) {
		l.Forwarding, _ = choice(d, n, "forwarding", forwardings)
	}},
	{"traffic", false, func(d *decoder, n *yaml.Node, l *Link) {
		if v, ok := choice(d, n, "traffic", traffics); ok {
			l.Traffic = v
		}
	}},
	{"frame", false, func(d *decoder, n *yaml.Node, l *Link) { l.Frame, _ = d.integer(n, "frame", minFrame, maxFrame) }},
	{"load", false, func(d *decoder, n *yaml.Node, l *Link) {
		l.Load, l.HasLoad = quantity(d, n, "load", ParseBitrate)
	}},
	{"requires", false, decodeRequires},
	{"qos", false, func(d *decoder, n *yaml.Node, l *Link) { l.QoS = d.qdisc(n) }},
	{"messages", false, decodeMessages},
}

var requiresFields = []field[Requires]{
	{"latency", false, func(d *decoder, n *yaml.Node, r *Requires) {
		r.Latency, _ = positive(d, n, "latency", ParseDuration)
	}},
	{"percentile", false, func(d *decoder, n *yaml.Node, r *Requires) {
		r.Percentile, _ = quantity(d, n, "percentile", ParsePercentile)
	}},
	{"packet_delay_variation", false, func(d *decoder, n *yaml.Node, r *Requires) {
		r.PDV, _ = positive(d, n, "packet_delay_variation", ParseDuration)
	}},
	{"packet_loss_ratio", false, func(d *decoder, n *yaml.Node, r *Requires) { r.LossRatio = d.lossRatio(n) }},
	{"min_bitrate", false, func(d *decoder, n *yaml.Node, r *Requires) {
		r.MinBitrate, _ = positive(d, n, "min_bitrate", ParseBitrate)
	}},
	{"max_bitrate", false, func(d *decoder, n *yaml.Node, r *Requires) {
		r.MaxBitrate = d.shapedRate(n, "max_bitrate")
	}},
	{"packet_rate", false, func(d *decoder, n *yaml.Node, r *Requires) {
		r.PacketRate, _ = positive(d, n, "packet_rate", ParsePacketRate)
	}},
	{"mtu", false, func(d *decoder, n *yaml.Node, r *Requires) { r.MTU, _ = d.integer(n, "mtu", minMTU, maxMTU) }},
}

var uplinkFields = []field[End]{
	{"uplink", true, func(d *decoder, n *yaml.Node, e *End) { e.Uplink = d.interfaceName(n) }},
}

func decodeEnds(d *decoder, n *yaml.Node, l *Link) {
	ports := 0
	d.list(n, "ends", func(item *yaml.Node) {
		e := End{Pos: d.position(item)}
		if deref(item).Kind == yaml.MappingNode {
			object(d, item, "an uplink", uplinkFields, &e)
		} else {
			d.portEnd(item, &e)
			ports++
		}
		l.Ends = append(l.Ends, e)
	})
	if deref(n).Kind != yaml.SequenceNode {
		return
	}
	if len(l.Ends) < 2 {
		d.fail(deref(n), "name at least two ends", "a link joins two ends or more, not %d", len(l.Ends))
	} else if ports == 0 {
		d.fail(deref(n), "name at least one port", "no end of the link is a function's port")
	}
}

// portEnd reads "function.port". A text without those two parts leaves e empty.
func (d *decoder) portEnd(n *yaml.Node, e *End) {
	s, ok := d.text(n, "a link end")
	if !ok {
		return
	}
	function, port, dotted := strings.Cut(s, ".")
	if !dotted || function == "" || port == "" {
		d.fail(n, `write "function.port", or {uplink: eth0} for a host interface`, "%s is not a link end", quote(s))
		return
	}
	e.Function, e.Port = function, port
}

func decodeRequires(d *decoder, n *yaml.Node, l *Link) {
	r := &l.Requires
	values := object(d, n, "requires", requiresFields, r)
	r.Pos = d.positions(values)
	delayed := values["latency"] != nil || values["packet_delay_variation"] != nil
	if p := values["percentile"]; p != nil && !delayed {
		d.fail(p, "add latency or packet_delay_variation, or remove it", "percentile has nothing to apply to")
	}
	if r.Percentile == 0 && delayed {
		r.Percentile = defaultPercentile
	}
	if r.MaxBitrate > 0 && r.MaxBitrate < r.MinBitrate {
		d.fail(values["max_bitrate"], "raise max_bitrate or lower min_bitrate",
			"max_bitrate %s is below min_bitrate %s", r.MaxBitrate, r.MinBitrate)
	}
}

// lossRatio explains why the ratio that most people would write is refused.
func (d *decoder) lossRatio(n *yaml.Node) *Ratio {
	s, ok := d.scalar(n, "packet_loss_ratio")
	if !ok {
		return nil
	}
	if isZero(strings.TrimSuffix(s, "%")) {
		d.fail(n, "write the largest ratio that you can accept, such as 1e-5", "a packet_loss_ratio of 0 cannot be proven by measurement")
		return nil
	}
	v, ok := quantity(d, n, "packet_loss_ratio", ParseRatio)
	if !ok {
		return nil
	}
	return &v
}

// isZero reports whether s is a number whose every digit is 0.
func isZero(s string) bool {
	mantissa, _, _ := strings.Cut(strings.ToLower(s), "e")
	return isDecimal(s, true) && strings.Trim(mantissa, "0.") == ""
}

// checkForwarding refuses a flow between more than two ends.
func (d *decoder) checkForwarding(l *Link, values map[string]*yaml.Node) {
	if l.Forwarding == ForwardingDirect && len(l.Ends) > 2 {
		d.fail(values["forwarding"], "write learning, or leave it out", "forwarding %s joins two ends, and the link has %d", l.Forwarding, len(l.Ends))
	}
}

// checkRates compares the rates of a link with each other.
func (d *decoder) checkRates(l *Link, values map[string]*yaml.Node) {
	limit := l.Requires.MaxBitrate
	if limit == 0 {
		return
	}
	if l.Load > limit {
		d.fail(values["load"], "lower load, or raise max_bitrate", "load %s is above max_bitrate %s, so it would be cut", l.Load, limit)
	}
	if l.QoS != nil {
		d.checkShaping(l.QoS, limit)
	}
}
