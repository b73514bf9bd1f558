// SPDX-License-Identifier: Apache-2.0

package chain

import (
	"github.com/drayage/dray/internal/spec/parse"
	"github.com/drayage/dray/internal/spec/schema"
	"github.com/drayage/dray/internal/spec/units"
	"go.yaml.in/yaml/v3"
)

var holdFields = []parse.Field[Hold]{
	parse.IntegerField("packets", "The maximum number of received packets not yet released by the application, per queue.",
		1, maxHold, func(h *Hold) *int { return &h.Packets }).Must(),
	parse.ChoiceField("beyond", "What happens to further packets: `drop` returns them at once and counts them; `copy` delivers them in the receiver's own memory.",
		beyonds, func(h *Hold) *Beyond { return &h.Beyond }).Default("drop"),
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
	parse.ReadField("size", "The largest message, at most 4Mi.",
		schema.Ref("size"), decodeMessageSize, func(m *Messages) *units.Bytes { return &m.Size }).Must(),
	parse.IntegerField("count", "How many may be in flight per queue and direction. The link uses size × count × queues × 2 of memory.",
		1, maxMessages, func(m *Messages) *int { return &m.Count }).Default(8),
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
