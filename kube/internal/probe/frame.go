// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"encoding/binary"
	"errors"
)

// EtherType is that of protocols with an OUI (IEEE 802), and Magic is what follows it: a
// locally administered OUI, and a protocol.
const (
	EtherType = 0x88b7
	Magic     = 0x02445259
)

// Offsets in a frame, from the Ethernet header on.
const (
	OffsetType  = 12
	OffsetMagic = 14
	OffsetSeq   = 18

	offsetEpoch = 22
	offsetPeer  = 30
	offsetSizes = 38
	stampsAt    = 40
	stampBytes  = 28
)

// How many stamps a probe carries, so a few lost probes hide no other.
const (
	sentStamps     = 4
	receivedStamps = 8
)

// HeaderSize is the least size of a probe. MaxPayload is the MTU that the largest needs.
const (
	HeaderSize = stampsAt
	MaxPayload = stampsAt - OffsetMagic + (sentStamps+receivedStamps)*stampBytes
)

// ethernet is the length of the header before the payload.
const ethernet = 14

// fullEvery is how many probes there are for one that is as large as the link's MTU allows.
const fullEvery = 32

// full reports whether a probe is as large as the MTU allows.
func full(seq uint32) bool { return seq%fullEvery == 0 }

// frame is a probe. An epoch is the time since a half measures: it begins when dray-net does.
type frame struct {
	seq         uint32
	epoch, peer uint64  // of its sender; of the receiver, as the sender knows it, or 0
	sent        []Stamp // the sender's latest probes
	received    []Stamp // the receiver's latest probes, when they reached the sender
}

func (f *frame) marshal(to, from [6]byte) []byte {
	b := make([]byte, stampsAt, stampsAt+(len(f.sent)+len(f.received))*stampBytes)
	copy(b, to[:])
	copy(b[6:], from[:])
	binary.BigEndian.PutUint16(b[OffsetType:], EtherType)
	binary.BigEndian.PutUint32(b[OffsetMagic:], Magic)
	binary.BigEndian.PutUint32(b[OffsetSeq:], f.seq)
	binary.BigEndian.PutUint64(b[offsetEpoch:], f.epoch)
	binary.BigEndian.PutUint64(b[offsetPeer:], f.peer)
	b[offsetSizes], b[offsetSizes+1] = byte(len(f.sent)), byte(len(f.received))
	for _, all := range [][]Stamp{f.sent, f.received} {
		for _, s := range all {
			b = binary.BigEndian.AppendUint32(b, s.Seq)
			b = binary.BigEndian.AppendUint64(b, s.NS)
			b = binary.BigEndian.AppendUint64(b, s.Count)
			b = binary.BigEndian.AppendUint64(b, s.Bytes)
		}
	}
	return b
}

var errFrame = errors.New("not a probe")

// parse reads a frame, which may be anything.
func parse(b []byte) (*frame, error) {
	if len(b) < stampsAt || binary.BigEndian.Uint16(b[OffsetType:]) != EtherType || binary.BigEndian.Uint32(b[OffsetMagic:]) != Magic {
		return nil, errFrame
	}
	f := &frame{
		seq:   binary.BigEndian.Uint32(b[OffsetSeq:]),
		epoch: binary.BigEndian.Uint64(b[offsetEpoch:]), peer: binary.BigEndian.Uint64(b[offsetPeer:]),
	}
	sent, received := int(b[offsetSizes]), int(b[offsetSizes+1])
	if f.seq == 0 || f.epoch == 0 || sent > sentStamps || received > receivedStamps || len(b) < stampsAt+(sent+received)*stampBytes {
		return nil, errFrame
	}
	for i := range sent + received {
		at := b[stampsAt+i*stampBytes:]
		s := Stamp{binary.BigEndian.Uint32(at), binary.BigEndian.Uint64(at[4:]), binary.BigEndian.Uint64(at[12:]), binary.BigEndian.Uint64(at[20:])}
		if !s.plausible() {
			return nil, errFrame
		}
		if i < sent {
			f.sent = append(f.sent, s)
		} else {
			f.received = append(f.received, s)
		}
	}
	return f, nil
}
