// SPDX-License-Identifier: Apache-2.0

package chain

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/drayage/dray/internal/spec/parse"
	"github.com/drayage/dray/internal/spec/schema"
	"github.com/drayage/dray/internal/spec/units"
	"go.yaml.in/yaml/v3"
)

// Bounds of what ports queue themselves (dataplane/port/PROTOCOL.md, section 12).
const (
	maxClasses       = 8
	maxPriority      = 7
	maxShapedRate    = 10_000_000_000_000 // bit/s
	minSlot          = units.Duration(1000)
	maxTime          = units.Duration(4_000_000_000)
	maxDSCP          = 63
	maxPCP           = 7
	classMatchFields = "dscp, pcp or meta"
)

// classParameters are the parameters of a class, beyond those of all kinds, by the kind of
// the discipline.
var classParameters = map[string][]string{
	"prio": nil,
	"htb":  {"rate", "ceil", "burst", "priority"},
	"hfsc": {"rate", "ceil", "peak", "peak_time"},
}

// commonClassFields are the parameters of any class.
var commonClassFields = []string{"name", "dscp", "pcp", "meta", "child"}

var classFields = []parse.Field[Class]{
	parse.NameField("name", "a class's name", "The name of the class, unique in its discipline. `dray status` shows it.",
		func(c *Class) *string { return &c.Name }).As(schema.Ref("name")).Must(),
	parse.ValueField("dscp", "The DSCPs (RFC 2474) of its packets, over IPv4 and IPv6.",
		schema.Set(schema.Integer(0, maxDSCP), 1, maxDSCP+1), numbers(maxDSCP), func(c *Class) *[]int { return &c.DSCP }),
	parse.ValueField("pcp", "The priorities of the VLAN tag (IEEE 802.1Q) of its packets.",
		schema.Set(schema.Integer(0, maxPCP), 1, maxPCP+1), numbers(maxPCP), func(c *Class) *[]int { return &c.PCP }),
	parse.ValueField("meta", "The metadata that the application gives its packets.",
		schema.Integer(0, math.MaxUint32), decodeMeta, func(c *Class) **int { return &c.Meta }),
	parse.ValueField("rate", "htb, hfsc (required): the rate that the class is granted, at least 8bps. In sum at most the rate of the discipline.",
		schema.Ref("bitrate"), DecodeShapedRate, func(c *Class) *units.Bitrate { return &c.Rate }),
	parse.ValueField("ceil", "htb: the rate up to which the class may borrow. Default: rate. hfsc: the rate that it never exceeds. Default: no limit. At least the class's rate, at most the discipline's.",
		schema.Ref("bitrate"), DecodeShapedRate, func(c *Class) *units.Bitrate { return &c.Ceil }),
	parse.ReadField("burst", "htb: the size of the class's buckets, at least one frame and less than 4Gi.",
		schema.Ref("size"), decodeBurst, func(c *Class) *units.Bytes { return &c.Burst }),
	parse.IntegerField("priority", "htb: classes with a lower number borrow first. Default: 0.", 0, maxPriority, func(c *Class) *int { return &c.Priority }),
	parse.ValueField("peak", "hfsc, with peak_time: the rate that the class is granted at first, after it was idle. At most the discipline's.",
		schema.Ref("bitrate"), DecodeShapedRate, func(c *Class) *units.Bitrate { return &c.Peak }),
	parse.ReadField("peak_time", "hfsc, with peak: for how long. At most 4s.",
		schema.Ref("duration"), decodeTime("peak_time", 1), func(c *Class) *units.Duration { return &c.PeakTime }),
}

func init() { // breaks an initialization cycle
	classFields = append(classFields, parse.Field[Class]{
		Name:   "child",
		Doc:    "The queue of the class: pfifo, bfifo, sfq, codel, fq_codel or slot. Default: pfifo.",
		Form:   schema.Ref("qos"),
		Decode: func(d *parse.Decoder, n *yaml.Node, c *Class) { c.Child = decodeChild(d, n) },
	})
}

func classesField() parse.Field[Qdisc] {
	return parse.Field[Qdisc]{
		Name:   "classes",
		Doc:    "prio (required), htb, hfsc: 1 to 8 traffic classes in place of child, only for ports with face native or dpdk on transport shm or ovs-dray. A packet is of the first class that it matches; no two classes match the same value. A class without dscp, pcp and meta takes the rest; if there is none, the last class does. prio sends from the first class that has a packet.",
		Form:   schema.List(schema.Ref("class"), 1, maxClasses),
		Decode: decodeClasses,
	}
}

func decodeClasses(d *parse.Decoder, n *yaml.Node, q *Qdisc) {
	names := parse.NewUnique("classes")
	d.List(n, "classes", func(item *yaml.Node) {
		c := Class{Pos: d.Position(item)}
		values := parse.Object(d, item, "class", classFields, &c)
		c.FieldPos = d.Positions(values)
		names.Add(d, c.Name, values["name"])
		if len(q.Classes) == maxClasses {
			d.Fail(item, "merge two classes", "a port has at most %d classes", maxClasses)
			return
		}
		q.Classes = append(q.Classes, c)
	})
	if len(q.Classes) == 0 {
		d.Fail(n, "list at least one, or leave the field out", "the list has no classes")
	}
}

// checkClasses compares the classes with their discipline and with each other.
func checkClasses(d *parse.Decoder, q *Qdisc, values map[string]*yaml.Node) {
	if q.Kind == "prio" && values["burst"] != nil && values["rate"] == nil {
		d.Fail(values["burst"], "add a rate, or remove it", "a burst without a rate limits nothing")
	}
	if q.Kind == "prio" && q.Rate > maxShapedRate {
		d.Fail(values["rate"], "write 10Tbps or less", "rate cannot be %s", q.Rate)
	}
	own, takes := classParameters[q.Kind]
	if len(q.Classes) == 0 || !takes {
		return
	}
	for _, name := range []string{"child", "ceil"} {
		if values[name] != nil && q.Kind != "prio" {
			d.Fail(values[name], "remove it; each class has its own", "a qdisc with classes has no %s", name)
		}
	}
	sum := units.Bitrate(0)
	caught := ""
	owner := map[string]string{} // of each match: its first class
	for i := range q.Classes {
		c := &q.Classes[i]
		c.checkParameters(d, q.Kind, own)
		c.checkRates(d, q)
		c.checkMatches(d, owner)
		sum += c.Rate
		if !c.CatchesAll() {
			continue
		}
		if caught != "" {
			d.FailAt(c.Pos, "give "+parse.Quote(c.Name)+" "+classMatchFields, "the classes %s and %s both take all other packets", parse.Quote(caught), parse.Quote(c.Name))
		}
		caught = c.Name
	}
	if q.Rate > 0 && sum > q.Rate {
		d.Fail(values["classes"], "lower them, or raise rate", "the classes' rates are %s in sum, above rate %s", sum, q.Rate)
	}
}

// checkParameters refuses what the discipline would ignore, and asks for what it needs.
func (c *Class) checkParameters(d *parse.Decoder, kind string, own []string) {
	known := append(slices.Clone(commonClassFields), own...)
	for _, f := range classFields {
		if at, ok := c.FieldPos[f.Name]; ok && !slices.Contains(known, f.Name) {
			d.FailAt(at, "remove it; the parameters are: "+strings.Join(known, ", "), "a class of %s has no parameter %q", kind, f.Name)
		}
	}
	if slices.Contains(own, "rate") && c.Rate == 0 {
		d.FailAt(c.Pos, "add it", "a class of %s needs the parameter %q", kind, "rate")
	}
	if (c.Peak > 0) != (c.PeakTime > 0) {
		d.FailAt(c.Pos, "give both, or neither", "peak and peak_time belong together")
	}
}

// checkMatches refuses what an earlier class matches: the class would get none of it.
func (c *Class) checkMatches(d *parse.Decoder, owner map[string]string) {
	match := func(field string, v int) {
		text := fmt.Sprintf("%s %d", field, v)
		if first, taken := owner[text]; taken {
			d.FailAt(c.FieldPos[field], "name it in one class", "the %s of class %s is already of class %s", text, parse.Quote(c.Name), parse.Quote(first))
			return
		}
		owner[text] = c.Name
	}
	for _, v := range c.DSCP {
		match("dscp", v)
	}
	for _, v := range c.PCP {
		match("pcp", v)
	}
	if c.Meta != nil {
		match("meta", *c.Meta)
	}
}

// checkRates compares a class's rates with each other and with the discipline's.
func (c *Class) checkRates(d *parse.Decoder, q *Qdisc) {
	switch {
	case c.Rate > maxShapedRate:
		d.FailAt(c.FieldPos["rate"], "write 10Tbps or less", "rate cannot be %s", c.Rate)
	case c.Peak > maxShapedRate:
		d.FailAt(c.FieldPos["peak"], "write 10Tbps or less", "peak cannot be %s", c.Peak)
	case c.Ceil > 0 && c.Ceil < c.Rate:
		d.FailAt(c.FieldPos["ceil"], "raise ceil or lower rate", "ceil %s is below rate %s", c.Ceil, c.Rate)
	case q.Rate > 0 && c.Peak > q.Rate:
		d.FailAt(c.FieldPos["peak"], "lower it, or raise the qdisc's rate", "peak %s is above the qdisc's rate %s", c.Peak, q.Rate)
	case q.Rate > 0 && c.Ceil > q.Rate:
		d.FailAt(c.FieldPos["ceil"], "lower it, or raise the qdisc's rate", "ceil %s is above the qdisc's rate %s", c.Ceil, q.Rate)
	}
}

// numbers reads a list of numbers from 0 to most, without duplicates.
func numbers(most int) func(*parse.Decoder, *yaml.Node, string) ([]int, bool) {
	return func(d *parse.Decoder, n *yaml.Node, what string) ([]int, bool) {
		var all []int
		empty := true
		d.List(n, what, func(item *yaml.Node) {
			empty = false
			v, ok := d.Integer(item, what, 0, most)
			switch {
			case !ok:
			case slices.Contains(all, v):
				d.Fail(item, "remove one of the two", "the %s %d appears twice", what, v)
			default:
				all = append(all, v)
			}
		})
		if empty && n.Kind == yaml.SequenceNode {
			d.Fail(n, "list at least one, or leave the field out", "the list of %s is empty", what)
		}
		return all, true
	}
}

func decodeMeta(d *parse.Decoder, n *yaml.Node, what string) (*int, bool) {
	v, ok := d.Integer(n, what, 0, math.MaxUint32)
	return &v, ok
}
