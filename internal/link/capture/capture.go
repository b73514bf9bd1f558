// SPDX-License-Identifier: Apache-2.0

// Package capture reads the packets that pass a port, and writes them as
// pcapng. It reads a capture memfd that the function's libdray fills, or the
// interface behind the port.
package capture

import (
	"context"
	"errors"
	"syscall"
	"time"
)

// Packet is one captured packet.
type Packet struct {
	Time   int64  // ns since 1970
	Length int    // original length in bytes
	Data   []byte // captured bytes; valid only during the call
	Sent   bool   // by the function; otherwise it was received
	Queue  int
}

// Source is a source of packets.
type Source interface {
	// Read passes on the current packets without waiting. If take returns an error,
	// it stops and returns it. It is bounded, however fast packets arrive.
	Read(take func(Packet) error) error
	// Wait waits until there may be packets, at most that long.
	Wait(time.Duration) error
	// Counts are totals since the start.
	Counts() Counts
}

// Counts of a source.
type Counts struct {
	Dropped   uint64 // packets that passed, but were not captured for lack of room
	Malformed uint64 // impossible records from the function
}

// ErrEnded is returned by a source that will deliver nothing more.
var ErrEnded = errors.New("the capture ended")

// Limits end a capture; 0 is none.
type Limits struct {
	Packets  uint64
	Duration time.Duration
}

// Result is the result of a capture.
type Result struct {
	Packets uint64
	Counts
	Start, End time.Time
}

// Nothing is the source of a port that no process has opened: it has ended.
type Nothing struct{}

// Read implements Source.
func (Nothing) Read(func(Packet) error) error { return ErrEnded }

// Wait implements Source.
func (Nothing) Wait(time.Duration) error { return nil }

// Counts implements Source.
func (Nothing) Counts() Counts { return Counts{} }

// Summary describes a capture that has ended.
type Summary struct {
	Packets   uint64    `json:"packets"`
	Dropped   uint64    `json:"dropped"`
	Malformed uint64    `json:"malformed"`
	Start     time.Time `json:"start"`
	End       time.Time `json:"end"`
	Because   string    `json:"ended_because"` // "": the user ended it
}

// Summary is the result with the reason why the source ended by itself.
func (r Result) Summary(because string) Summary {
	return Summary{r.Packets, r.Dropped, r.Malformed, r.Start, r.End, because}
}

// waitAtMost bounds how late a capture notices a request to stop.
const waitAtMost = 100 * time.Millisecond

var errEnough = errors.New("enough")

// Run copies packets to w until a limit is reached, ctx or the source ends, or
// w's reader is gone. None of these is an error. Statistics end the file.
func Run(ctx context.Context, s Source, w *Writer, l Limits) (Result, error) {
	r := Result{Start: time.Now()}
	if l.Duration > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, l.Duration)
		defer cancel()
	}
	err := copyPackets(ctx, s, w, l.Packets, &r)
	r.End, r.Counts = time.Now(), s.Counts()
	if errors.Is(err, syscall.EPIPE) {
		return r, nil
	}
	if errors.Is(err, errEnough) || errors.Is(err, ErrEnded) {
		err = nil
	}
	err = errors.Join(err, w.Statistics(r), w.Flush())
	if errors.Is(err, syscall.EPIPE) {
		err = nil
	}
	return r, err
}

func copyPackets(ctx context.Context, s Source, w *Writer, most uint64, r *Result) error {
	take := func(p Packet) error {
		if err := w.Packet(p); err != nil {
			return err
		}
		r.Packets++
		if r.Packets == most {
			return errEnough
		}
		return nil
	}
	for {
		last, before := ctx.Err() != nil, r.Packets // after the end there is one more read, for packets from before it
		if err := s.Read(take); err != nil || last {
			return err
		}
		if r.Packets != before {
			continue
		}
		if err := w.Flush(); err != nil {
			return err
		}
		if err := s.Wait(waitAtMost); err != nil {
			return err
		}
	}
}

// Interface describes the captured port in the file.
type Interface struct {
	Name        string
	Description string
	Snaplen     int // bytes kept per packet
}
