// SPDX-License-Identifier: Apache-2.0

package chain

import (
	"fmt"
	"time"

	"github.com/drayage/dray/internal/spec/parse"
	"github.com/drayage/dray/internal/spec/schema"
	"github.com/drayage/dray/internal/spec/units"
	"go.yaml.in/yaml/v3"
)

const maxPRB, maxLayers, maxVLAN, maxWindow = 273, 16, 4094, units.Duration(10 * time.Millisecond)

var fronthaulFields = []parse.Field[Fronthaul]{
	parse.ReadField("scs", "The subcarrier spacing in kHz: 15, 30 or 120, with slots of 1, 0.5 or 0.125 ms.",
		schema.Integer(15, 120), decodeSCS, func(f *Fronthaul) *int { return &f.SCS }).Must(),
	parse.IntegerField("prb", "The PRBs in each U-plane message, 28 bytes each (BFP, nine bits).",
		1, maxPRB, func(f *Fronthaul) *int { return &f.PRB }).Default(maxPRB),
	parse.IntegerField("layers", "The messages per symbol and per C-plane, each of its own eAxC.",
		1, maxLayers, func(f *Fronthaul) *int { return &f.Layers }).Default(4),
	parse.IntegerField("vlan", "The VLAN ID of the frames.",
		1, maxVLAN, func(f *Fronthaul) *int { return &f.VLAN }).Default(1),
	windowField("t1a_cp", "The transmission window of the C-plane", "285us, 429us", func(f *Fronthaul) *Window { return &f.T1aCP }),
	windowField("t1a_up", "The transmission window of the U-plane", "96us, 196us", func(f *Fronthaul) *Window { return &f.T1aUP }),
	windowField("t2a_cp", "The receive window of the C-plane", "285us, 429us", func(f *Fronthaul) *Window { return &f.T2aCP }),
	windowField("t2a_up", "The receive window of the U-plane", "71us, 428us", func(f *Fronthaul) *Window { return &f.T2aUP }),
}

func windowField(name, doc, usual string, at func(*Fronthaul) *Window) parse.Field[Fronthaul] {
	doc += fmt.Sprintf(": the least and the most time before the symbol is on air, in whole microseconds up to 10ms. Default at 30 kHz: %s.", usual)
	read := func(d *parse.Decoder, n *yaml.Node) Window { return decodeWindow(d, n, name) }
	return parse.ReadField(name, doc, schema.List(schema.Ref("duration"), 2, 2), read, at)
}

func decodeSCS(d *parse.Decoder, n *yaml.Node) int {
	v, ok := d.Integer(n, "scs", 15, 120)
	if ok && !knownSpacing(v) {
		d.Fail(n, "write 15, 30 or 120", "no load here has a subcarrier spacing of %d kHz", v)
	}
	return v
}

func decodeWindow(d *parse.Decoder, n *yaml.Node, name string) Window {
	var w Window
	good := true
	d.List(n, name, func(item *yaml.Node) {
		v, ok := parse.Positive(d, item, name, units.ParseDuration)
		w, good = append(w, v), good && ok
	})
	switch {
	case !good || parse.Deref(n).Kind != yaml.SequenceNode:
		return nil
	case len(w) != 2 || w[0] >= w[1]:
		d.Fail(n, "write the shorter and the longer time: [71us, 428us]", "%s needs two times, the shorter one first", name)
		return nil
	case w[1] > maxWindow || w[0]%units.Duration(time.Microsecond) != 0 || w[1]%units.Duration(time.Microsecond) != 0:
		d.Fail(n, "write whole microseconds up to 10ms", "%s cannot be from %v to %v", name, w[0], w[1])
		return nil
	}
	return w
}

func decodeFronthaul(d *parse.Decoder, n *yaml.Node) *Fronthaul {
	f := &Fronthaul{PRB: maxPRB, Layers: 4, VLAN: 1}
	parse.Object(d, n, "a fronthaul", fronthaulFields, f)
	if !knownSpacing(f.SCS) {
		return nil // reported
	}
	f.complete()
	return f
}

// decodeOnTime takes the share in any form of a ratio.
func decodeOnTime(d *parse.Decoder, n *yaml.Node) units.Ratio {
	v, _ := parse.Quantity(d, n, "on_time", units.ParseRatio)
	return v
}

// checkSlotLoad compares a link's load in slots with its other fields.
func checkSlotLoad(d *parse.Decoder, l *Link, values map[string]*yaml.Node) {
	if l.Fronthaul != nil && l.FAPI != nil {
		d.Fail(values["fapi"], "leave out one of the two", "a link has a fronthaul or FAPI messages as its load, not both")
	}
	if load := l.SlotLoad(); load != nil {
		field := load.Field()
		if l.Load > 0 {
			d.Fail(values["load"], fmt.Sprintf("leave out load: %s is the load", field), "a link has %s or a bitrate as its load, not both", field)
		}
		if l.Frame > 0 {
			d.Fail(values["frame"], fmt.Sprintf("leave out frame: %s decides the lengths", field), "a link with %s has no frame", field)
		}
	}
	if l.Requires.OnTime > 0 && values["fronthaul"] == nil && values["fapi"] == nil {
		d.FailAt(l.Requires.Pos["on_time"], "describe the load, as in fronthaul: {scs: 30} or fapi: {scs: 30}",
			"on_time needs a fronthaul or FAPI messages, whose receive windows it is of")
	}
	checkFAPI(d, l, values)
}
