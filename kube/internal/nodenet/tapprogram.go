// SPDX-License-Identifier: Apache-2.0

package nodenet

import (
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/drayage/dray/internal/host/bpf"
	"github.com/drayage/dray/kube/internal/probe"
)

// The records of a tap: first the present counts, then those of the latest probes sent, then
// those of the latest received.
const (
	slots   = 256
	records = 1 + 2*slots
)

func slotOf(seq uint32, received bool) uint32 {
	slot := 1 + seq%slots
	if received {
		slot += slots
	}
	return slot
}

// newRecords makes the map of a tap.
func newRecords() (int, error) {
	attr := struct{ kind, key, value, entries, flags uint32 }{unix.BPF_MAP_TYPE_ARRAY, 4, uint32(unsafe.Sizeof(record{})), records, 0}
	return bpf.Call(unix.BPF_MAP_CREATE, unsafe.Pointer(&attr), unsafe.Sizeof(attr))
}

// Operations of eBPF (RFC 9669), registers, and offsets in struct __sk_buff.
const (
	opLoadAbsW, opLoadAbsH            = 0x20, 0x28
	opLoadW, opStoreW, opStoreDW      = 0x61, 0x63, 0x7b
	opLoadDW, opStoreImmW             = 0x79, 0x62
	opAddAtomic, opLoadImm            = 0xdb, 0x18
	opMove, opMoveImm, opAddImm       = 0xbf, 0xb7, 0x07
	opAndImm                          = 0x57
	opJumpEq, opJumpNe, opJumpLess    = 0x15, 0x55, 0xa5
	opJump, opCall, opExit            = 0x05, 0x85, 0x95
	r0, r1, r2, r6, r7, r8, r9, frame = 0, 1, 2, 6, 7, 8, 9, 10
	skbLen, skbKind, skbSegments      = 0, 4, 164
	callLookup, callTime              = 1, 5
	pseudoMap                         = 1
	atKey, atCounts                   = -4, -40
	recNS, recCounts                  = 8, 16
	recSent, recReceived, recBytes    = 16, 24, 16 // the bytes come after both counts
	countSize, counts                 = 8, 4
)

// program is a program with named places to jump to.
type program struct {
	code  []bpf.Instruction
	jumps map[int]string
	marks map[string]int
}

func (p *program) add(op, dst, src uint8, offset int16, constant int32) {
	p.code = append(p.code, bpf.Instruction{Op: op, Regs: dst | src<<4, Offset: offset, Constant: constant})
}

func (p *program) jump(op, dst uint8, constant int32, to string) {
	p.jumps[len(p.code)] = to
	p.add(op, dst, 0, 0, constant)
}

func (p *program) mark(name string) { p.marks[name] = len(p.code) }

// done resolves the jumps.
func (p *program) done() []bpf.Instruction {
	for at, to := range p.jumps {
		p.code[at].Offset = int16(p.marks[to] - at - 1)
	}
	return p.code
}

// lookup makes r0 the record whose number is at atKey, and ends the program if there is none.
func (p *program) lookup(records int) {
	p.add(opMove, r2, frame, 0, 0)
	p.add(opAddImm, r2, 0, 0, atKey)
	p.add(opLoadImm, r1, pseudoMap, 0, int32(records))
	p.add(0, 0, 0, 0, 0)
	p.add(opCall, 0, 0, 0, callLookup)
	p.jump(opJumpEq, r0, 0, "drop")
}

// counts makes r0 the present counts.
func (p *program) counts(records int) {
	p.add(opStoreImmW, frame, 0, atKey, 0)
	p.lookup(records)
}

// tapProgram counts packets, and notes the counts and the time of each probe:
//
//	r6 the packet; r7 the record's number, or a number of packets; r8 the probe's number; r9 the time, or bytes
func tapProgram(records int) []bpf.Instruction {
	p := &program{jumps: map[int]string{}, marks: map[string]int{}}
	p.add(opMove, r6, r1, 0, 0)
	p.add(opLoadW, r7, r6, skbLen, 0)
	p.jump(opJumpLess, r7, probe.HeaderSize, "packet")
	p.add(opLoadAbsW, 0, 0, 0, probe.OffsetMagic)
	p.jump(opJumpNe, r0, probe.Magic, "packet")
	p.add(opLoadAbsH, 0, 0, 0, probe.OffsetType)
	p.jump(opJumpNe, r0, probe.EtherType, "packet")
	p.add(opLoadAbsW, 0, 0, 0, probe.OffsetSeq)
	p.add(opMove, r8, r0, 0, 0)
	p.add(opMove, r7, r0, 0, 0)
	p.add(opAndImm, r7, 0, 0, slots-1)
	p.add(opAddImm, r7, 0, 0, 1)
	p.add(opLoadW, r1, r6, skbKind, 0)
	p.jump(opJumpEq, r1, unix.PACKET_OUTGOING, "note")
	p.add(opAddImm, r7, 0, 0, slots)
	p.mark("note")
	p.counts(records)
	for i := range int16(counts) {
		p.add(opLoadDW, r1, r0, recCounts+i*countSize, 0)
		p.add(opStoreDW, frame, r1, atCounts+i*countSize, 0)
	}
	p.add(opCall, 0, 0, 0, callTime)
	p.add(opMove, r9, r0, 0, 0)
	p.add(opStoreW, frame, r7, atKey, 0)
	p.lookup(records)
	p.add(opStoreDW, r0, r8, 0, 0)
	p.add(opStoreDW, r0, r9, recNS, 0)
	for i := range int16(counts) {
		p.add(opLoadDW, r1, frame, atCounts+i*countSize, 0)
		p.add(opStoreDW, r0, r1, recCounts+i*countSize, 0)
	}
	p.add(opLoadW, r1, r6, skbKind, 0)
	p.jump(opJumpEq, r1, unix.PACKET_OUTGOING, "drop")
	p.add(opMoveImm, r0, 0, 0, 0xffff) // let it through
	p.add(opExit, 0, 0, 0, 0)

	p.mark("packet") // or several that the kernel has joined
	p.add(opLoadW, r7, r6, skbSegments, 0)
	p.jump(opJumpNe, r7, 0, "count")
	p.add(opMoveImm, r7, 0, 0, 1)
	p.mark("count")
	p.counts(records)
	p.add(opLoadW, r9, r6, skbLen, 0)
	p.add(opLoadW, r8, r6, skbKind, 0)
	p.jump(opJumpEq, r8, unix.PACKET_OUTGOING, "sent")
	p.add(opAddAtomic, r0, r7, recReceived, 0)
	p.add(opAddAtomic, r0, r9, recReceived+recBytes, 0)
	p.jump(opJump, 0, 0, "drop")
	p.mark("sent")
	p.add(opAddAtomic, r0, r7, recSent, 0)
	p.add(opAddAtomic, r0, r9, recSent+recBytes, 0)
	p.mark("drop")
	p.add(opMoveImm, r0, 0, 0, 0)
	p.add(opExit, 0, 0, 0, 0)
	return p.done()
}

// loadTap loads the program with a map.
func loadTap(records int) (int, error) {
	return bpf.Load(unix.BPF_PROG_TYPE_SOCKET_FILTER, 0, "dray_tap", tapProgram(records))
}

// noProbes keeps probes from the socket of an application. The application may take the
// filter off; then it sees the probes of its own link.
var noProbes = []unix.SockFilter{
	{Code: unix.BPF_LD | unix.BPF_H | unix.BPF_ABS, K: probe.OffsetType},
	{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: probe.EtherType, Jf: 3},
	{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: probe.OffsetMagic},
	{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: probe.Magic, Jf: 1},
	{Code: unix.BPF_RET | unix.BPF_K, K: 0},
	{Code: unix.BPF_RET | unix.BPF_K, K: 0xffffffff},
}
