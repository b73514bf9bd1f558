// SPDX-License-Identifier: Apache-2.0

package chain

import (
	"math"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// qdiscKinds are the disciplines that a chain file may ask for, with the
// parameters that each has and needs.
var qdiscKinds = []struct {
	kind       string
	parameters []string
	required   []string
}{
	{"pfifo", []string{"limit"}, nil},
	{"bfifo", []string{"limit"}, nil},
	{"tbf", []string{"rate", "burst", "latency", "child"}, []string{"rate"}},
	{"htb", []string{"rate", "ceil", "burst", "child"}, []string{"rate"}},
	{"hfsc", []string{"rate", "child"}, []string{"rate"}},
	{"sfq", []string{"limit"}, nil},
	{"codel", []string{"limit"}, nil},
	{"fq_codel", []string{"limit"}, nil},
	{"netem", []string{"rate", "latency", "limit"}, nil},
}

// queueKinds are those that may queue below a shaper.
var queueKinds = []string{"pfifo", "bfifo", "sfq", "codel", "fq_codel"}

var qdiscFields = []field[Qdisc]{
	{"qdisc", true, func(d *decoder, n *yaml.Node, q *Qdisc) { q.Kind, _ = choice(d, n, "qdisc", qdiscNames()) }},
	{"rate", false, func(d *decoder, n *yaml.Node, q *Qdisc) { q.Rate = d.shapedRate(n, "rate") }},
	{"ceil", false, func(d *decoder, n *yaml.Node, q *Qdisc) { q.Ceil = d.shapedRate(n, "ceil") }},
	{"burst", false, func(d *decoder, n *yaml.Node, q *Qdisc) { q.Burst = d.burst(n) }},
	{"latency", false, func(d *decoder, n *yaml.Node, q *Qdisc) { q.Latency = d.queueing(n) }},
	{"limit", false, func(d *decoder, n *yaml.Node, q *Qdisc) { q.Limit, _ = d.integer(n, "limit", 1, math.MaxInt32) }},
	{"at", false, func(d *decoder, n *yaml.Node, q *Qdisc) { q.At, _ = choice(d, n, "place", places) }},
}

// switchKinds are those that a switch sets itself, with what it knows of them
// (ovs-vswitchd.conf.db(5), table QoS).
var switchKinds = []string{"htb", "hfsc"}

func init() { // the table would refer to itself
	qdiscFields = append(qdiscFields, field[Qdisc]{"child", false, decodeChild})
}

// decodeChild reads what queues below a shaper, which shapes nothing itself.
func decodeChild(d *decoder, n *yaml.Node, q *Qdisc) {
	q.Child = d.qdisc(n)
	d.refuseAt(q.Child, "what queues below a shaper is where the shaper is")
	if kind := q.Child.Kind; kind != "" && !slices.Contains(queueKinds, kind) {
		d.failAt(q.Child.FieldPos["qdisc"], "use one of: "+strings.Join(queueKinds, ", "), "the qdisc %s cannot queue below another", kind)
	}
}

func (d *decoder) qdisc(n *yaml.Node) *Qdisc {
	q := &Qdisc{Pos: d.position(n)}
	values := object(d, n, "qos", qdiscFields, q)
	q.FieldPos = d.positions(values)
	for _, k := range qdiscKinds {
		if k.kind == q.Kind {
			d.checkParameters(deref(n), values, k.kind, k.parameters, k.required)
		}
	}
	if q.Ceil > 0 && q.Ceil < q.Rate {
		d.fail(values["ceil"], "raise ceil or lower rate", "ceil %s is below rate %s", q.Ceil, q.Rate)
	}
	if q.Kind == "tbf" && q.Child != nil && values["latency"] != nil {
		d.fail(values["latency"], "remove it, or bound the queue by the child's limit", "a tbf with a child has no queue of its own, whose latency could be bounded")
	}
	switch {
	case !q.AtSwitch() || q.Kind == "":
	case !slices.Contains(switchKinds, q.Kind):
		d.failAt(q.FieldPos["at"], "use one of: "+strings.Join(switchKinds, ", "), "no switch sets the qdisc %s", q.Kind)
	case q.Child != nil:
		d.fail(values["child"], "remove it, or at: switch", "a switch lets nothing but a FIFO queue below its shaper")
	}
	return q
}

// refuseAt refuses a place for a discipline that has no choice of it.
func (d *decoder) refuseAt(q *Qdisc, why string) {
	if q.At != "" {
		d.failAt(q.FieldPos["at"], "remove it", "%s", why)
	}
}

// checkParameters refuses parameters that the discipline would not apply.
func (d *decoder) checkParameters(n *yaml.Node, values map[string]*yaml.Node, kind string, known, required []string) {
	for _, f := range qdiscFields {
		value := values[f.name]
		if value != nil && f.name != "qdisc" && f.name != "at" && !slices.Contains(known, f.name) {
			d.fail(value, "remove it; the parameters are: "+strings.Join(known, ", "), "the qdisc %s has no parameter %q", kind, f.name)
		}
	}
	for _, name := range required {
		if values[name] == nil {
			d.fail(n, "add it", "the qdisc %s needs the parameter %q", kind, name)
		}
	}
}

// checkShaping refuses a discipline that would not keep the link below limit:
// one egress has one discipline, so it must do both.
func (d *decoder) checkShaping(q *Qdisc, limit Bitrate) {
	fix := "remove qos: max_bitrate alone sets a tbf"
	switch {
	case q.Kind == "":
	case q.Kind != "tbf" && q.Kind != "htb":
		d.failAt(q.FieldPos["qdisc"], fix+"; or write a tbf or htb with a rate of at most "+limit.String(),
			"the qdisc %s cannot enforce max_bitrate %s", q.Kind, limit)
	case q.Rate > limit:
		d.failAt(q.FieldPos["rate"], "lower rate, or raise max_bitrate", "the qdisc's rate %s is above max_bitrate %s", q.Rate, limit)
	case q.Ceil > limit:
		d.failAt(q.FieldPos["ceil"], "lower ceil, or raise max_bitrate", "the qdisc's ceil %s is above max_bitrate %s", q.Ceil, limit)
	}
}

// shapedRate is a rate that the kernel can enforce: it counts whole bytes.
func (d *decoder) shapedRate(n *yaml.Node, what string) Bitrate {
	v, ok := positive(d, n, what, ParseBitrate)
	if ok && v < 8 {
		d.fail(n, "write 8bps or more", "%s cannot be %s, which is less than a byte per second", what, v)
	}
	return v
}

// queueing is a time in the unit of tc(8).
func (d *decoder) queueing(n *yaml.Node) Duration {
	v, ok := positive(d, n, "latency", ParseDuration)
	if ok && v%1000 != 0 {
		d.fail(n, "write whole microseconds", "the latency of a qdisc cannot be %s", v)
	}
	return v
}

// burst is a size that fits the kernel's 32-bit field.
func (d *decoder) burst(n *yaml.Node) Bytes {
	v, ok := positive(d, n, "burst", ParseBytes)
	if ok && v > math.MaxUint32 {
		d.fail(n, "write less than 4Gi", "burst cannot be %s", v)
	}
	return v
}

func qdiscNames() []string {
	names := make([]string, len(qdiscKinds))
	for i, k := range qdiscKinds {
		names[i] = k.kind
	}
	return names
}
