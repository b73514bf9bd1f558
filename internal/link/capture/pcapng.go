// SPDX-License-Identifier: Apache-2.0

package capture

import (
	"bufio"
	"io"
	"runtime"
	"time"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
	"github.com/gopacket/gopacket/pcapgo"
)

// bufferSize is what the file is written in, in bytes: pcapgo keeps a buffer that
// it is given if it is larger than its own.
const bufferSize = 64 << 10

// maxText bounds a text in the file's header, in bytes.
const maxText = 1024

// Writer writes a pcapng file (draft-ietf-opsawg-pcapng) of one section with one
// interface. Its errors are those of the writer below; after the first, each call
// returns it.
type Writer struct{ ng *pcapgo.NgWriter }

// NewWriter begins a file. application is the program that writes it.
func NewWriter(w io.Writer, application string, i Interface) (*Writer, error) {
	ng, err := pcapgo.NewNgWriterInterface(bufio.NewWriterSize(w, bufferSize), pcapgo.NgInterface{
		Name: short(i.Name), Description: short(i.Description), LinkType: layers.LinkTypeEthernet, SnapLength: uint32(i.Snaplen),
	}, pcapgo.NgWriterOptions{SectionInfo: pcapgo.NgSectionInfo{
		Hardware: runtime.GOARCH, OS: runtime.GOOS, Application: short(application),
	}})
	return &Writer{ng}, err
}

func short(text string) string { return text[:min(len(text), maxText)] }

// Packet writes one packet, with its direction and queue.
func (p *Writer) Packet(k Packet) error {
	direction := pcapgo.NgEpbFlagDirectionInbound
	if k.Sent {
		direction = pcapgo.NgEpbFlagDirectionOutbound
	}
	queue := uint32(k.Queue)
	return p.ng.WritePacketWithOptions(gopacket.CaptureInfo{
		Timestamp: time.Unix(0, k.Time), CaptureLength: len(k.Data), Length: max(k.Length, len(k.Data)),
	}, k.Data, pcapgo.NgPacketOptions{Flags: &pcapgo.NgEpbFlags{Direction: direction}, Queue: &queue})
}

// Statistics ends a section: how many packets passed, and how many of them are
// missing because there was no room.
func (p *Writer) Statistics(r Result) error {
	return p.ng.WriteInterfaceStats(0, pcapgo.NgInterfaceStatistics{
		LastUpdate: r.End, StartTime: r.Start, EndTime: r.End, PacketsReceived: r.Packets + r.Dropped, PacketsDropped: r.Dropped,
	})
}

// Flush hands on what was written so far.
func (p *Writer) Flush() error { return p.ng.Flush() }
