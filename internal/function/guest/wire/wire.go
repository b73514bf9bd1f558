// SPDX-License-Identifier: Apache-2.0

// Package wire is the protocol between the host and the agent in a guest, over
// one virtio-serial channel. Neither side trusts the other: each frame is
// bounded, and malformed data only ends the session.
//
// A frame is a type (1 byte, never 0), the payload's length (4 bytes, big endian)
// and the payload. A 0 byte in place of a type is skipped. A new client first
// sends Preamble, which completes any unfinished frame of a killed client. Then
// it sends a Hello, which the agent answers with a Welcome that repeats its
// nonce. The client discards everything before that.
//
//	client                          agent
//	Preamble, Hello(nonce)   →
//	                         ←      Welcome(nonce)
//	Exec(request)            →
//	                         ←      Started | Failed(reason)
//	Stdin(data)… StdinEnd    →
//	Signal(number)           →
//	                         ←      Stdout(data), Stderr(data), Credit(bytes), Beat…
//	                         ←      Exit(status)
//
// If a client goes away its session ends: the agent kills its processes.
package wire

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// Type is the type of a frame.
type Type byte

// Frame types: those below 64 go to the agent, the others to the client.
const (
	Hello    Type = 1 // nonce
	Exec     Type = 2 // Request, as JSON
	Stdin    Type = 3 // data, within the credit
	StdinEnd Type = 4
	Signal   Type = 5 // one byte: the number

	Welcome Type = 65 // nonce
	Started Type = 66
	Failed  Type = 67 // why the program could not start
	Stdout  Type = 68 // data
	Stderr  Type = 69 // data
	Credit  Type = 70 // uint32: how many more bytes of Stdin fit
	Beat    Type = 71 // nothing: the guest is alive
	Exit    Type = 72 // int32: exit status, 128+n for signal n; all output has been sent
)

// Limits of a frame and of a session.
const (
	// MaxPayload bounds a frame's payload, in bytes.
	MaxPayload = 32 << 10
	// Window is how much Stdin may be in flight before any Credit, in bytes.
	Window = 64 << 10
	// NonceSize is the length of a nonce, in bytes.
	NonceSize = 16
	header    = 5
)

// ErrMalformed is every error caused by the peer rather than the channel.
var ErrMalformed = errors.New("malformed frame")

// Preamble brings the agent's reader to a frame boundary, whatever was sent before.
func Preamble() []byte { return make([]byte, header+MaxPayload) }

// Append appends a frame to a buffer. The payload must be at most MaxPayload.
func Append(buf []byte, t Type, payload []byte) []byte {
	buf = append(buf, byte(t))
	buf = binary.BigEndian.AppendUint32(buf, uint32(len(payload)))
	return append(buf, payload...)
}

// Reader reads frames.
type Reader struct {
	r   io.Reader
	buf [MaxPayload]byte
}

// NewReader reads frames from r, which should be buffered.
func NewReader(r io.Reader) *Reader { return &Reader{r: r} }

// Next returns the next frame; its payload is valid until the next call.
func (r *Reader) Next() (Type, []byte, error) {
	var h [header]byte
	for h[0] == 0 {
		if _, err := io.ReadFull(r.r, h[:1]); err != nil {
			return 0, nil, err
		}
	}
	if _, err := io.ReadFull(r.r, h[1:]); err != nil {
		return 0, nil, err
	}
	n := binary.BigEndian.Uint32(h[1:])
	if n > MaxPayload {
		return 0, nil, fmt.Errorf("%w: type %d, length %d", ErrMalformed, h[0], n)
	}
	if _, err := io.ReadFull(r.r, r.buf[:n]); err != nil {
		return 0, nil, err
	}
	return Type(h[0]), r.buf[:n], nil
}

// maxGarbage bounds how much Await discards: more than a virtqueue and all
// buffers between guest and host hold.
const maxGarbage = 64 << 20

// Await reads up to and including the Welcome that answers the nonce. Earlier
// data was for an earlier client.
func Await(r io.ByteReader, nonce []byte) error {
	want := Append(nil, Welcome, nonce)
	window := make([]byte, 0, 2*len(want))
	for i := 0; i < maxGarbage; i++ {
		b, err := r.ReadByte()
		if err != nil {
			return err
		}
		if len(window) == cap(window) {
			window = append(window[:0], window[len(window)-len(want)+1:]...)
		}
		if window = append(window, b); bytes.HasSuffix(window, want) {
			return nil
		}
	}
	return fmt.Errorf("%w: no answer in %d bytes", ErrMalformed, maxGarbage)
}

// Request describes a program to run.
type Request struct {
	Argv []string `json:"argv"`
	Env  []string `json:"env"`
	Dir  string   `json:"dir"`
	// Group is the parent control group of the program, one word; Memory (bytes) and
	// Pids are its limits, 0 for none.
	Group  string `json:"group,omitempty"`
	Memory uint64 `json:"memory,omitempty"`
	Pids   uint64 `json:"pids,omitempty"`
	// Container runs the program in the guest's container; nil: as a process.
	Container *Container `json:"container,omitempty"`
}

// Container is the guest's only container. Once prepared it has the machine's
// interfaces, and all other programs in the guest use its network namespace.
type Container struct {
	Name string `json:"name"` // its host name
	Verb Verb   `json:"verb"`
}

// Verb is an operation on a container.
type Verb string

const (
	Prepare Verb = "prepare" // makes its namespaces, before any program runs; Argv is only a name
	RunIt   Verb = "run"     // runs the program as its first process
	Beside  Verb = "beside"  // runs another program in it
)

// ParseRequest reads the payload of an Exec.
func ParseRequest(payload []byte) (Request, error) {
	var r Request
	if err := json.Unmarshal(payload, &r); err != nil {
		return r, fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	if len(r.Argv) == 0 || r.Argv[0] == "" {
		return r, fmt.Errorf("%w: no program", ErrMalformed)
	}
	for _, c := range r.Group {
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') {
			return r, fmt.Errorf("%w: control group %q", ErrMalformed, r.Group)
		}
	}
	if c := r.Container; c != nil && (c.Name == "" || c.Verb != Prepare && c.Verb != RunIt && c.Verb != Beside) {
		return r, fmt.Errorf("%w: container %+v", ErrMalformed, *c)
	}
	return r, nil
}

// Uint32 reads the payload of a Credit or an Exit.
func Uint32(payload []byte) (uint32, error) {
	if len(payload) != 4 {
		return 0, fmt.Errorf("%w: %d bytes for a number", ErrMalformed, len(payload))
	}
	return binary.BigEndian.Uint32(payload), nil
}

// PutUint32 is the payload of a Credit or an Exit.
func PutUint32(v uint32) []byte { return binary.BigEndian.AppendUint32(nil, v) }
