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

// leastMessage holds the headers and the generator's own, in bytes.
const leastMessage units.Bytes = 128

var fapiFields = []parse.Field[FAPI]{
	parse.ReadField("scs", "The subcarrier spacing in kHz: 15, 30 or 120, with slots of 1, 0.5 or 0.125 ms.",
		schema.Integer(15, 120), decodeSCS, func(f *FAPI) *int { return &f.SCS }).Must(),
	fapiMessage("dl_tti", "DL_TTI.request", defaultDLTTI, func(f *FAPI) *units.Bytes { return &f.DLTTI }),
	fapiMessage("tx_data", "TX_DATA.request", defaultTXData, func(f *FAPI) *units.Bytes { return &f.TXData }),
	parse.ReadField("within", "How long after the beginning of its slot a message may arrive, in whole microseconds up to 10ms. Default: the length of a slot.",
		schema.Ref("duration"), decodeWithin, func(f *FAPI) *units.Duration { return &f.Within }),
}

func fapiMessage(name, message string, usual units.Bytes, at func(*FAPI) *units.Bytes) parse.Field[FAPI] {
	doc := fmt.Sprintf("The size of each %s, headers included, from %v to %v.", message, leastMessage, units.Bytes(maxMessage))
	read := func(d *parse.Decoder, n *yaml.Node) units.Bytes { return decodeFAPIMessage(d, n, name) }
	return parse.ReadField(name, doc, schema.Ref("size"), read, at).Default(usual.String())
}

func decodeFAPIMessage(d *parse.Decoder, n *yaml.Node, name string) units.Bytes {
	v, ok := parse.Quantity(d, n, name, units.ParseBytes)
	if ok && (v < leastMessage || v > maxMessage) {
		d.Fail(n, fmt.Sprintf("write a size from %v to %v", leastMessage, units.Bytes(maxMessage)), "%s cannot be %v", name, v)
		return 0
	}
	return v
}

func decodeWithin(d *parse.Decoder, n *yaml.Node) units.Duration {
	v, ok := parse.Positive(d, n, "within", units.ParseDuration)
	if ok && (v > maxWindow || v%units.Duration(time.Microsecond) != 0) {
		d.Fail(n, "write whole microseconds up to 10ms", "within cannot be %v", v)
	}
	return v
}

func decodeFAPI(d *parse.Decoder, n *yaml.Node) *FAPI {
	f := &FAPI{DLTTI: defaultDLTTI, TXData: defaultTXData}
	values := parse.Object(d, n, "fapi", fapiFields, f)
	if !knownSpacing(f.SCS) {
		return nil // reported
	}
	if values["within"] == nil {
		f.Within = f.slot()
	}
	return f
}

// checkFAPI compares a link's FAPI messages with the buffers for them.
func checkFAPI(d *parse.Decoder, l *Link, values map[string]*yaml.Node) {
	switch m := l.Messages; {
	case l.FAPI == nil:
	case m == nil:
		d.Fail(values["fapi"], fmt.Sprintf("add messages: {size: %v} to the link", l.FAPI.Largest()), "FAPI messages need message buffers, and the link has none")
	case m.Size > 0 && m.Size < l.FAPI.Largest():
		d.Fail(values["messages"], fmt.Sprintf("write size: %v or more", l.FAPI.Largest()), "a FAPI message of %v does not fit message buffers of %v", l.FAPI.Largest(), m.Size)
	case m.Count < perSlot:
		d.Fail(values["messages"], fmt.Sprintf("write count: %d or more", perSlot), "both FAPI messages of a slot are sent at once, and only %d may be in flight", m.Count)
	}
}
