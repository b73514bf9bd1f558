// SPDX-License-Identifier: Apache-2.0

package chain

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"github.com/drayage/dray/internal/spec/parse"
	"github.com/drayage/dray/internal/spec/schema"
	"github.com/drayage/dray/internal/spec/units"
	"go.yaml.in/yaml/v3"
)

// qdiscKinds are the disciplines of a chain file, with their allowed and required
// parameters.
var qdiscKinds = []struct {
	kind       string
	parameters []string
	required   []string
}{
	{"pfifo", []string{"limit"}, nil},
	{"bfifo", []string{"limit"}, nil},
	{"tbf", []string{"rate", "burst", "latency", "child"}, []string{"rate"}},
	{"htb", []string{"rate", "ceil", "burst", "child", "classes"}, []string{"rate"}},
	{"hfsc", []string{"rate", "child", "classes"}, []string{"rate"}},
	{"sfq", []string{"limit"}, nil},
	{"codel", []string{"limit", "target", "interval", "ecn"}, nil},
	{"fq_codel", []string{"limit", "target", "interval", "ecn"}, nil},
	{"netem", []string{"rate", "latency", "limit"}, nil},
	{"prio", []string{"rate", "burst", "classes"}, []string{"classes"}},
	{"slot", []string{"slot", "offset", "clock", "limit"}, []string{"slot"}},
}

// userKinds are the kinds that no kernel of ours has: only ports that libdray opens queue so.
var userKinds = []string{"prio", "slot"}

// KernelQueues are the kinds of the kernel that may queue below a shaper; QueueKinds are
// these and those of ports that libdray opens.
var (
	KernelQueues = []string{"pfifo", "bfifo", "sfq", "codel", "fq_codel"}
	QueueKinds   = append(slices.Clone(KernelQueues), "slot")
)

var qdiscFields = []parse.Field[Qdisc]{
	parse.ChoiceField("qdisc", "The discipline. `dray doctor` lists the kernel's disciplines.",
		QdiscNames(), func(q *Qdisc) *string { return &q.Kind }).Must(),
	parse.ValueField("rate", "tbf, htb, hfsc (required), prio: the granted rate, at least 8bps; with classes, of all together. netem: the emulated rate.",
		schema.Ref("bitrate"), DecodeShapedRate, func(q *Qdisc) *units.Bitrate { return &q.Rate }),
	parse.ValueField("ceil", "htb without classes: the rate up to which it may borrow, at least rate. Default: rate.",
		schema.Ref("bitrate"), DecodeShapedRate, func(q *Qdisc) *units.Bitrate { return &q.Ceil }),
	parse.ReadField("burst", "tbf, htb, prio with a rate: the size of the bucket, at least one frame and less than 4Gi.",
		schema.Ref("size"), decodeBurst, func(q *Qdisc) *units.Bytes { return &q.Burst }),
	parse.ReadField("latency", "tbf: the longest time that a packet may wait in the queue. netem: the added delay. Whole microseconds.",
		schema.Ref("duration"), decodeQueueing, func(q *Qdisc) *units.Duration { return &q.Latency }),
	parse.IntegerField("limit", "pfifo, sfq, codel, fq_codel, netem, slot: the length of the queue in packets. bfifo: its length in bytes.",
		1, math.MaxInt32, func(q *Qdisc) *int { return &q.Limit }),
	parse.ReadField("target", "codel, fq_codel: the wait in the queue that is accepted. Default: 5ms. Whole microseconds, at most 4s.",
		schema.Ref("duration"), decodeTime("target", 1000), func(q *Qdisc) *units.Duration { return &q.Target }),
	parse.ReadField("interval", "codel, fq_codel: the time for which the wait must be longer than target before packets are dropped or marked, at least target. Default: 100ms. Whole microseconds, at most 4s.",
		schema.Ref("duration"), decodeTime("interval", 1000), func(q *Qdisc) *units.Duration { return &q.Interval }),
	parse.ValueField("ecn", "codel, fq_codel: mark packets that can be marked, rather than drop them (RFC 3168). Default: false for codel, true for fq_codel.",
		schema.Bool(), decodeFlag, func(q *Qdisc) **bool { return &q.ECN }),
	parse.ReadField("slot", "slot (required): the length of a slot, from 1us to 4s. A packet that cannot be sent whole in the slot in which the application handed it over is dropped at once.",
		schema.Ref("duration"), decodeTime("slot", 1), func(q *Qdisc) *units.Duration { return &q.Slot }),
	parse.ReadField("offset", "slot: when slots begin after a multiple of their length, less than that. Default: 0.",
		schema.Ref("duration"), decodeTime("offset", 1), func(q *Qdisc) *units.Duration { return &q.Offset }),
	parse.ChoiceField("clock", "slot: the clock of the slots: `monotonic` (default), since the host's start, or `realtime`, the time of day in UTC.",
		clocks, func(q *Qdisc) *Clock { return &q.Clock }),
	parse.ChoiceField("at", "Where the link's discipline is attached: `port` (default), on each port, for packets that the function sends; `switch`, in Open vSwitch's own QoS table on its side of each port, for packets that the function receives. The latter takes htb and hfsc without child, sfq, codel and fq_codel, with transport ovs or ovs-dray, and prio, slot and classes with ovs-dray alone. It leaves the ports' own qos in place. A port's own qos cannot set it.",
		places, func(q *Qdisc) *Place { return &q.At }).Called("place"),
}

// OVSKinds are the kinds that Open vSwitch attaches, with its parameters for them
// (ovs-vswitchd.conf.db(5), table QoS). SwitchKinds are also those of its ports that
// libdray opens.
var (
	OVSKinds    = []string{"htb", "hfsc", "sfq", "codel", "fq_codel"}
	SwitchKinds = append(slices.Clone(OVSKinds), userKinds...)
)

func init() { // breaks an initialization cycle
	qdiscFields = append(qdiscFields, parse.Field[Qdisc]{
		Name:   "child",
		Doc:    "tbf, htb, hfsc: the queue below the shaper, one of pfifo, bfifo, sfq, codel, fq_codel and slot. Default: a FIFO. A tbf with a child takes no latency.",
		Form:   schema.Ref("qos"),
		Decode: func(d *parse.Decoder, n *yaml.Node, q *Qdisc) { q.Child = decodeChild(d, n) },
	}, classesField())
}

// decodeChild reads the queue below a shaper or of a class, which itself shapes nothing.
func decodeChild(d *parse.Decoder, n *yaml.Node) *Qdisc {
	child := decodeQdisc(d, n)
	refuseAt(d, child, "a child queues below the shaper and cannot be placed elsewhere")
	if kind := child.Kind; kind != "" && !slices.Contains(QueueKinds, kind) {
		d.FailAt(child.FieldPos["qdisc"], "use one of: "+strings.Join(QueueKinds, ", "), "the qdisc %s cannot queue below another", kind)
	}
	return child
}

func decodeQdisc(d *parse.Decoder, n *yaml.Node) *Qdisc {
	q := &Qdisc{Pos: d.Position(n)}
	values := parse.Object(d, n, "qos", qdiscFields, q)
	q.FieldPos = d.Positions(values)
	for _, k := range qdiscKinds {
		if k.kind == q.Kind {
			checkParameters(d, parse.Deref(n), values, k.kind, k.parameters, k.required)
		}
	}
	if q.Ceil > 0 && q.Ceil < q.Rate {
		d.Fail(values["ceil"], "raise ceil or lower rate", "ceil %s is below rate %s", q.Ceil, q.Rate)
	}
	checkTimes(d, q, values)
	checkClasses(d, q, values)
	if q.Kind == "tbf" && q.Child != nil && values["latency"] != nil {
		d.Fail(values["latency"], "remove it, or bound the queue by the child's limit", "a tbf with a child has no queue of its own, so it cannot bound the latency")
	}
	switch {
	case !q.AtSwitch() || q.Kind == "":
	case !slices.Contains(SwitchKinds, q.Kind):
		d.FailAt(q.FieldPos["at"], "use one of: "+strings.Join(SwitchKinds, ", "), "no switch sets the qdisc %s", q.Kind)
	case q.Child != nil:
		d.Fail(values["child"], "remove it, or at: switch", "at the switch only a FIFO can queue below the shaper")
	case q.Kind == "sfq" && q.Limit > 0:
		d.Fail(values["limit"], "remove it, or at: switch", "Open vSwitch does not set the limit of an sfq")
	case q.ECN != nil:
		d.Fail(values["ecn"], "remove it, or at: switch", "Open vSwitch does not set ecn")
	}
	return q
}

// checkTimes compares the times of CoDel and of slots.
func checkTimes(d *parse.Decoder, q *Qdisc, values map[string]*yaml.Node) {
	target, interval := cmp.Or(q.Target, DefaultTarget), cmp.Or(q.Interval, DefaultInterval)
	if target > interval {
		d.Fail(cmp.Or(values["interval"], values["target"]), "lower target, or raise interval", "target %s is longer than interval %s", target, interval)
	}
	if q.Slot > 0 && q.Slot < minSlot {
		d.Fail(values["slot"], "write 1us or more", "a slot cannot be %s", q.Slot)
	}
	if q.Slot > 0 && q.Offset >= q.Slot {
		d.Fail(values["offset"], "lower it", "offset %s is not within a slot of %s", q.Offset, q.Slot)
	}
}

// refuseAt refuses a place for a discipline without that choice.
func refuseAt(d *parse.Decoder, q *Qdisc, why string) {
	if q.At != "" {
		d.FailAt(q.FieldPos["at"], "remove it", "%s", why)
	}
}

// checkParameters refuses parameters that the discipline would ignore.
func checkParameters(d *parse.Decoder, n *yaml.Node, values map[string]*yaml.Node, kind string, known, required []string) {
	for _, f := range qdiscFields {
		value := values[f.Name]
		if value != nil && f.Name != "qdisc" && f.Name != "at" && !slices.Contains(known, f.Name) {
			d.Fail(value, "remove it; the parameters are: "+strings.Join(known, ", "), "the qdisc %s has no parameter %q", kind, f.Name)
		}
	}
	for _, name := range required {
		if values[name] == nil {
			d.Fail(n, "add it", "the qdisc %s needs the parameter %q", kind, name)
		}
	}
}

// checkShaping refuses a discipline that would not keep the link below limit: an egress
// has one discipline, which must do both.
func checkShaping(d *parse.Decoder, q *Qdisc, limit units.Bitrate) {
	fix := "remove qos: max_bitrate alone sets a tbf"
	switch {
	case q.Kind == "":
	case q.Kind != "tbf" && q.Kind != "htb" && (q.Kind != "prio" || q.Rate == 0):
		d.FailAt(q.FieldPos["qdisc"], fix+"; or write a tbf or htb with a rate of at most "+limit.String(),
			"the qdisc %s cannot enforce max_bitrate %s", q.Kind, limit)
	case q.Rate > limit:
		d.FailAt(q.FieldPos["rate"], "lower rate, or raise max_bitrate", "the qdisc's rate %s is above max_bitrate %s", q.Rate, limit)
	case q.Ceil > limit:
		d.FailAt(q.FieldPos["ceil"], "lower ceil, or raise max_bitrate", "the qdisc's ceil %s is above max_bitrate %s", q.Ceil, limit)
	}
}

// DecodeShapedRate reads a rate that the kernel can enforce: it counts whole bytes.
func DecodeShapedRate(d *parse.Decoder, n *yaml.Node, what string) (units.Bitrate, bool) {
	v, ok := parse.Positive(d, n, what, units.ParseBitrate)
	if ok && v < 8 {
		d.Fail(n, "write 8bps or more", "%s cannot be %s, which is less than a byte per second", what, v)
	}
	return v, ok
}

// decodeQueueing reads a time for tc(8).
func decodeQueueing(d *parse.Decoder, n *yaml.Node) units.Duration {
	v, ok := parse.Positive(d, n, "latency", units.ParseDuration)
	if ok && v%1000 != 0 {
		d.Fail(n, "write whole microseconds", "the latency of a qdisc cannot be %s", v)
	}
	return v
}

// decodeTime reads a time in whole units of so many nanoseconds. The protocol of ports has
// 32 bits of nanoseconds for it.
func decodeTime(what string, unit units.Duration) func(*parse.Decoder, *yaml.Node) units.Duration {
	return func(d *parse.Decoder, n *yaml.Node) units.Duration {
		read := parse.Positive[units.Duration]
		if what == "offset" {
			read = parse.Quantity[units.Duration]
		}
		v, ok := read(d, n, what, units.ParseDuration)
		switch {
		case ok && v%unit != 0:
			d.Fail(n, "write whole microseconds", "%s cannot be %s", what, v)
		case ok && v > maxTime:
			d.Fail(n, "write 4s or less", "%s cannot be %s", what, v)
		}
		return v
	}
}

func decodeFlag(d *parse.Decoder, n *yaml.Node, what string) (*bool, bool) {
	v, ok := d.Boolean(n, what)
	return &v, ok
}

// decodeBurst reads a size that fits the kernel's 32-bit field.
func decodeBurst(d *parse.Decoder, n *yaml.Node) units.Bytes {
	v, ok := parse.Positive(d, n, "burst", units.ParseBytes)
	if ok && v > math.MaxUint32 {
		d.Fail(n, "write less than 4Gi", "burst cannot be %s", v)
	}
	return v
}

// QdiscNames are the kinds of a chain file; KernelQdiscs are those that a kernel can have.
func QdiscNames() []string {
	names := make([]string, len(qdiscKinds))
	for i, k := range qdiscKinds {
		names[i] = k.kind
	}
	return names
}

func KernelQdiscs() []string {
	return slices.DeleteFunc(QdiscNames(), func(kind string) bool { return slices.Contains(userKinds, kind) })
}
