// SPDX-License-Identifier: Apache-2.0

package chain

import "go.yaml.in/yaml/v3"

var holdFields = []field[Hold]{
	{"packets", true, func(d *decoder, n *yaml.Node, h *Hold) { h.Packets, _ = d.integer(n, "packets", 1, maxHold) }},
	{"beyond", false, func(d *decoder, n *yaml.Node, h *Hold) {
		if v, ok := choice(d, n, "beyond", beyonds); ok {
			h.Beyond = v
		}
	}},
}

func decodeHold(d *decoder, n *yaml.Node, p *Port) {
	p.Hold = &Hold{Beyond: BeyondDrop}
	object(d, n, "hold", holdFields, p.Hold)
}

// checkHold refuses a bound that nothing would keep.
func (d *decoder) checkHold(p *Port, values map[string]*yaml.Node) {
	if p.Hold != nil && p.Face == FaceNetdev {
		d.fail(values["hold"], "remove it, or write face: native", "hold cannot be given with face: %s, whose packets the kernel copies", p.Face)
	}
}

var messagesFields = []field[Messages]{
	{"size", true, func(d *decoder, n *yaml.Node, m *Messages) { m.Size = d.messageSize(n) }},
	{"count", false, func(d *decoder, n *yaml.Node, m *Messages) {
		if v, ok := d.integer(n, "count", 1, maxMessages); ok {
			m.Count = v
		}
	}},
}

func decodeMessages(d *decoder, n *yaml.Node, l *Link) {
	l.Messages = &Messages{Count: defaultMessages}
	object(d, n, "messages", messagesFields, l.Messages)
}

func (d *decoder) messageSize(n *yaml.Node) Bytes {
	v, ok := quantity(d, n, "size", ParseBytes)
	if ok && (v == 0 || v > maxMessage) {
		d.fail(n, "write more than 0, and 4Mi at most", "the size of a message cannot be %s", v)
	}
	return v
}
