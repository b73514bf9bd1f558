// SPDX-License-Identifier: Apache-2.0

// Package capture reads the packets that pass a port, from a capture memfd that
// the function's libdray fills or from the interface behind the port, and writes
// them as pcapng.
package capture

import (
	"context"
	"errors"
	"syscall"
	"time"
)

// Packet is one packet that passed.
type Packet struct {
	Time   int64  // ns since 1970
	Length int    // bytes that it had
	Data   []byte // those that were kept; valid during the call only
	Sent   bool   // by the function; otherwise it was received
	Queue  int
}

// Source gives packets.
type Source interface {
	// Read hands over what there is now, and does not wait. It stops at an
	// error of take, and returns it. It ends by itself, however fast packets come.
	Read(take func(Packet) error) error
	// Wait waits until there may be something, at the longest so long.
	Wait(time.Duration) error
	// Counts are since the beginning.
	Counts() Counts
}

// Counts of a source.
type Counts struct {
	Dropped   uint64 // packets that passed, and were not captured for want of room
	Malformed uint64 // records that the function wrote and that cannot be
}

// ErrEnded is returned by a source from which nothing will come any more.
var ErrEnded = errors.New("the capture was ended")

// Limits end a capture; 0 is none.
type Limits struct {
	Packets  uint64
	Duration time.Duration
}

// Result is what a capture came to.
type Result struct {
	Packets uint64
	Counts
	Start, End time.Time
}

// waitAtMost bounds how late a capture notices that it shall end.
const waitAtMost = 100 * time.Millisecond

var errEnough = errors.New("enough")

// Run copies packets to w until a limit is reached, ctx ends, the source does, or
// nobody reads w any more; none of these is an error. Statistics end the file.
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
		last, before := ctx.Err() != nil, r.Packets // what came before the end is read after it
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
	Snaplen     int // bytes kept of each packet
}
