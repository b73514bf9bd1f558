// SPDX-License-Identifier: Apache-2.0

// Package guestports brings the native ports of a virtual machine's function to the chain's
// broker. libdray in the guest speaks its ordinary protocol to a relay in the guest, which
// takes the broker's place. Its other half on the host takes the end's place. The link's
// memory is plugged into the guest as a PCI device (ivshmem-plain); messages, bells and
// telemetry pass as frames through the guest's agent.
//
//	application   relay in the guest            relay on the host          broker
//	     |  HELLO        |  opened, message            |  HELLO               |
//	     |-------------->|---------------------------->|--------------------->|
//	     |               |                             |        OFFER, memfd  |
//	     |               |   offer (window)            |<---------------------|
//	     |  OFFER, BAR   |<----------- plugs the memory|  MAPPED              |
//	     |<--------------|                             |--------------------->|
//	     |  bell         |  ring                       |  bell                |
//	     |<------------->|<--------------------------->|<------------------> peer
package guestports

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
)

// kind is what a frame says.
type kind byte

const (
	serve     kind = iota + 1 // to the guest: the ports, as JSON; first
	ready                     // to the host: each port has a socket
	opened                    // to the host: connection Number of a port begins
	closed                    // connection Number is over
	message                   // a message of connection Number, without descriptors
	offer                     // to the guest: the OFFER for connection Number, whose memory is in Window
	ring                      // the bell of Queue in generation Number
	hangUp                    // generation Number is over
	telemetry                 // to the host: the port's telemetry memory
	free                      // to the host: no program maps the memory in Window
)

// frame is one unit between the two relays.
type frame struct {
	Kind          kind
	Port          uint8 // index of the port
	Window, Queue uint8
	Number        uint32
	Data          []byte
}

const (
	frameHeader = 12
	maxData     = 512 << 10 // the telemetry of 16 queues takes half of that
)

// maxWaiting bounds the frames that wait until the other side reads: a guest that asks and
// does not read must not fill the host's memory.
const maxWaiting = 64

var (
	errFrame   = errors.New("malformed frame between a guest's ports and the host")
	errStalled = errors.New("the other side of a guest's ports does not read")
)

// stream sends frames; its methods are safe for concurrent use.
type stream struct {
	waiting atomic.Int32
	mu      sync.Mutex
	out     io.Writer
}

// send waits until the other side reads, with at most maxWaiting others.
func (s *stream) send(f frame) error {
	defer s.waiting.Add(-1)
	if s.waiting.Add(1) > maxWaiting {
		return errStalled
	}
	b := make([]byte, 0, frameHeader+len(f.Data))
	b = append(b, byte(f.Kind), f.Port, f.Window, f.Queue)
	b = binary.LittleEndian.AppendUint32(b, f.Number)
	b = binary.LittleEndian.AppendUint32(b, uint32(len(f.Data)))
	s.mu.Lock()
	defer s.mu.Unlock()
	_, err := s.out.Write(append(b, f.Data...))
	return err
}

// later sends without waiting: the reader of the other direction must not.
func (s *stream) later(f frame) { go func() { _ = s.send(f) }() } // a broken stream shows when it is read

// receive reads the next frame.
func receive(in io.Reader) (frame, error) {
	var h [frameHeader]byte
	if _, err := io.ReadFull(in, h[:]); err != nil {
		return frame{}, err
	}
	f := frame{Kind: kind(h[0]), Port: h[1], Window: h[2], Queue: h[3], Number: binary.LittleEndian.Uint32(h[4:])}
	n := binary.LittleEndian.Uint32(h[8:])
	if n > maxData || f.Kind < serve || f.Kind > free {
		return f, fmt.Errorf("%w: kind %d, %d bytes", errFrame, f.Kind, n)
	}
	f.Data = make([]byte, n)
	_, err := io.ReadFull(in, f.Data)
	return f, err
}
