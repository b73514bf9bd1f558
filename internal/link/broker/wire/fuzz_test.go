// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"bytes"
	"encoding/binary"
	"testing"
)

// FuzzParse: every accepted packet encodes to the same bytes again.
func FuzzParse(f *testing.F) {
	for _, b := range append(readBlocks(f, "messages.txt", "message", 1), readBlocks(f, "bad.txt", "case", 1)...) {
		f.Add(b.bytes(f), byte(b.fds(f)), b.sender() == FromBroker)
	}
	f.Fuzz(func(t *testing.T, b []byte, fds byte, broker bool) {
		from := FromEnd
		if broker {
			from = FromBroker
		}
		m, err := Parse(b, int(fds), from)
		if err == nil && !bytes.Equal(m.Marshal(), b) {
			t.Errorf("%x is accepted as %+v, which is %x", b, m, m.Marshal())
		}
		if err == nil && int(fds) > MaxFDs {
			t.Errorf("%d descriptors are accepted", fds)
		}
	})
}

// FuzzGeometry: every accepted geometry stays within its memory.
func FuzzGeometry(f *testing.F) {
	f.Add(uint32(4096), uint32(2), uint32(1024), uint32(512), uint32(2240), uint32(128), uint32(4), uint32(4194432), uint32(128))
	f.Fuzz(func(t *testing.T, page, queues, ring, slots, stride, headroom, msgs, msgStride, msgHeadroom uint32) {
		g := Geometry{PageSize: page, Queues: queues, RingSize: ring, PktSlots: slots, PktStride: stride, PktHeadroom: headroom,
			MsgSlots: msgs, MsgStride: msgStride, MsgHeadroom: msgHeadroom}
		o, err := g.Derive()
		if err != nil {
			return
		}
		last := Page + 2*uint64(queues)*o.LaneSize
		ok := o.Extensions < o.Completions && o.Completions < o.Packets && o.Packets+uint64(slots)*uint64(stride) <= o.Messages &&
			o.Messages+uint64(msgs)*uint64(msgStride) <= o.LaneSize && last <= o.Size && o.Size <= sizeMax && slots+msgs <= ring
		if !ok {
			t.Errorf("%+v gives %+v", g, o)
		}
	})
}

// FuzzTelemetry: a function may write any bytes.
func FuzzTelemetry(f *testing.F) {
	valid := binary.LittleEndian.AppendUint32(nil, telemetryMagic)
	valid = binary.LittleEndian.AppendUint32(valid, Version)
	f.Add(valid, byte(1))
	f.Fuzz(func(t *testing.T, head []byte, queues byte) {
		q := int(queues%MaxQueues) + 1
		b := make([]byte, TelemetrySize(q))
		for n := 0; n < len(b) && len(head) > 0; {
			n += copy(b[n:], head)
		}
		if got, err := ParseTelemetry(b, q); (err == nil) != (got != nil) {
			t.Errorf("got %v, %v", got, err)
		}
	})
}
