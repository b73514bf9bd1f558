// SPDX-License-Identifier: Apache-2.0

package capture

import (
	"bufio"
	"encoding/binary"
	"io"
	"runtime"
	"time"
)

// Blocks and options of pcapng (draft-ietf-opsawg-pcapng).
const (
	blockSection    = 0x0a0d0d0a
	blockInterface  = 1
	blockStatistics = 5
	blockPacket     = 6

	byteOrder        = 0x1a2b3c4d
	linkTypeEthernet = 1

	optionEnd = 0

	sectionHardware    = 2
	sectionOS          = 3
	sectionApplication = 4

	interfaceName        = 2
	interfaceDescription = 3
	interfaceResolution  = 9

	packetFlags = 2
	packetQueue = 6
	inbound     = 1
	outbound    = 2

	statisticsStart    = 2
	statisticsEnd      = 3
	statisticsReceived = 4
	statisticsDropped  = 5
)

// Writer writes one section with one interface. Its errors are those of the
// writer below; after the first, each call returns it.
type Writer struct {
	w     *bufio.Writer
	block []byte
}

// NewWriter begins a file. application is who writes it.
func NewWriter(w io.Writer, application string, i Interface) (*Writer, error) {
	p := &Writer{w: bufio.NewWriterSize(w, 64<<10)}
	p.begin(blockSection)
	p.u32(byteOrder)
	p.u16(1) // version 1.0
	p.u16(0)
	p.u64(^uint64(0)) // the length of the section is not known
	p.text(sectionHardware, runtime.GOARCH)
	p.text(sectionOS, runtime.GOOS)
	p.text(sectionApplication, application)
	if err := p.end(); err != nil {
		return nil, err
	}
	p.begin(blockInterface)
	p.u16(linkTypeEthernet)
	p.u16(0)
	p.u32(uint32(i.Snaplen))
	p.text(interfaceName, i.Name)
	p.text(interfaceDescription, i.Description)
	p.option(interfaceResolution, 9) // ns
	return p, p.end()
}

// Packet writes one packet, with its direction and queue.
func (p *Writer) Packet(k Packet) error {
	p.begin(blockPacket)
	p.u32(0) // the interface
	p.time(k.Time)
	p.u32(uint32(len(k.Data)))
	p.u32(uint32(k.Length))
	p.padded(k.Data)
	direction := byte(inbound)
	if k.Sent {
		direction = outbound
	}
	p.option(packetFlags, direction, 0, 0, 0)
	p.option(packetQueue, byte(k.Queue), 0, 0, 0)
	return p.end()
}

// Statistics ends a section: how many packets passed, and how many of them are
// not in the file for want of room.
func (p *Writer) Statistics(r Result) error {
	p.begin(blockStatistics)
	p.u32(0)
	p.time(r.End.UnixNano())
	p.optionTime(statisticsStart, r.Start)
	p.optionTime(statisticsEnd, r.End)
	p.option64(statisticsReceived, r.Packets+r.Dropped)
	p.option64(statisticsDropped, r.Dropped)
	return p.end()
}

// Flush hands on what was written so far.
func (p *Writer) Flush() error { return p.w.Flush() }

func (p *Writer) u16(v uint16) { p.block = binary.LittleEndian.AppendUint16(p.block, v) }
func (p *Writer) u32(v uint32) { p.block = binary.LittleEndian.AppendUint32(p.block, v) }
func (p *Writer) u64(v uint64) { p.block = binary.LittleEndian.AppendUint64(p.block, v) }

// time is in two halves, the upper first.
func (p *Writer) time(ns int64) {
	p.u32(uint32(uint64(ns) >> 32))
	p.u32(uint32(ns))
}

func (p *Writer) padded(b []byte) {
	p.block = append(p.block, b...)
	for len(p.block)%4 != 0 {
		p.block = append(p.block, 0)
	}
}

func (p *Writer) option(code uint16, value ...byte) {
	p.u16(code)
	p.u16(uint16(len(value)))
	p.padded(value)
}

// text leaves an empty option out, and cuts a long one.
func (p *Writer) text(code uint16, s string) {
	if s != "" {
		p.option(code, []byte(s[:min(len(s), 1024)])...)
	}
}

func (p *Writer) option64(code uint16, v uint64) {
	p.option(code, binary.LittleEndian.AppendUint64(nil, v)...)
}

func (p *Writer) optionTime(code uint16, t time.Time) {
	p.u16(code)
	p.u16(8)
	p.time(t.UnixNano())
}

// begin starts a block; end fills its length in, which stands at both ends.
func (p *Writer) begin(kind uint32) {
	p.block = p.block[:0]
	p.u32(kind)
	p.u32(0)
}

func (p *Writer) end() error {
	p.u32(optionEnd) // code and length
	length := uint32(len(p.block) + 4)
	binary.LittleEndian.PutUint32(p.block[4:], length)
	p.u32(length)
	_, err := p.w.Write(p.block)
	return err
}
