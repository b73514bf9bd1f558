// SPDX-License-Identifier: Apache-2.0

package chain

import (
	"github.com/drayage/dray/internal/spec/parse"
	"github.com/drayage/dray/internal/spec/schema"
	"github.com/drayage/dray/internal/spec/units"
	"go.yaml.in/yaml/v3"
)

var holdFields = []parse.Field[Hold]{
	{
		Name: "packets", Required: true,
		Doc:    "The maximum number of received packets not yet released by the application, per queue.",
		Form:   schema.Integer(1, maxHold),
		Decode: func(d *parse.Decoder, n *yaml.Node, h *Hold) { h.Packets, _ = d.Integer(n, "packets", 1, maxHold) },
	},
	{
		Name: "beyond",
		Doc:  "What happens to further packets: `drop` returns them at once and counts them; `copy` delivers them in the receiver's own memory.",
		Form: schema.Enum(beyonds).Default("drop"),
		Decode: func(d *parse.Decoder, n *yaml.Node, h *Hold) {
			if v, ok := parse.Choice(d, n, "beyond", beyonds); ok {
				h.Beyond = v
			}
		},
	},
}

func decodeHold(d *parse.Decoder, n *yaml.Node, p *Port) {
	p.Hold = &Hold{Beyond: BeyondDrop}
	parse.Object(d, n, "hold", holdFields, p.Hold)
}

// checkHold refuses a bound that nothing would enforce.
func checkHold(d *parse.Decoder, p *Port, values map[string]*yaml.Node) {
	if p.Hold != nil && p.Face == FaceNetdev {
		d.Fail(values["hold"], "remove it, or write face: native", "hold cannot be given with face: %s, whose packets the kernel copies", p.Face)
	}
}

var messagesFields = []parse.Field[Messages]{
	{
		Name: "size", Required: true,
		Doc:    "The largest message, at most 4Mi.",
		Form:   schema.Ref("size"),
		Decode: func(d *parse.Decoder, n *yaml.Node, m *Messages) { m.Size = decodeMessageSize(d, n) },
	},
	{
		Name: "count",
		Doc:  "How many may be in flight per queue and direction. The link uses size × count × queues × 2 of memory.",
		Form: schema.Integer(1, maxMessages).Default(8),
		Decode: func(d *parse.Decoder, n *yaml.Node, m *Messages) {
			if v, ok := d.Integer(n, "count", 1, maxMessages); ok {
				m.Count = v
			}
		},
	},
}

func decodeMessages(d *parse.Decoder, n *yaml.Node, l *Link) {
	l.Messages = &Messages{Count: defaultMessages}
	parse.Object(d, n, "messages", messagesFields, l.Messages)
}

func decodeMessageSize(d *parse.Decoder, n *yaml.Node) units.Bytes {
	v, ok := parse.Quantity(d, n, "size", units.ParseBytes)
	if ok && (v == 0 || v > maxMessage) {
		d.Fail(n, "write more than 0, and 4Mi at most", "the size of a message cannot be %s", v)
	}
	return v
}
