// SPDX-License-Identifier: Apache-2.0

package record

import (
	"errors"
	"fmt"
	"math"
	"os"
	"time"
)

// Quantities of a matrix.
const (
	QFrames  Quantity = "frames"  // frames of a stated size at a stated rate, or as many as the port takes
	QCeiling Quantity = "ceiling" // the same without a port: what the generator itself can do
)

// MarkGeneratorBound is of a rate over 80 % of what the generator reaches without
// a port: the figure is rather the generator's than the link's.
const MarkGeneratorBound = "generator-bound"

// Bench is what a trial of a matrix has beside what every trial has.
type Bench struct {
	Config Config `json:"config"`
	Load   string `json:"load"` // as the matrix has it
	// Limit is of the moment just before; nil: it could not be measured.
	Limit *Limit `json:"limit,omitempty"`
	Span  *Span  `json:"span,omitempty"`
	Cost  *Cost  `json:"cost,omitempty"`
	// Ceiling is the result of QCeiling.
	Ceiling *Ceiling `json:"ceiling,omitempty"`
	// Search is how a load that is searched for was found; the trial is then the
	// one at the load found. Step counts the trials of the search itself, from 1.
	Search *Search `json:"search,omitempty"`
	Step   int     `json:"step,omitempty"`
	// PDR is what Load is a share of, packets/s, found in the same round; 0: it is none.
	PDR float64 `json:"pdr,omitempty"`
}

// Config is one combination of what a matrix lists, as the matrix has it.
type Config struct {
	Transport string `json:"transport"`
	Face      string `json:"face"`
	Runtime   string `json:"runtime"`
	Size      string `json:"size"`
	VNF       string `json:"vnf"`
}

// String is "transport/face/runtime/size/vnf".
func (c Config) String() string {
	return fmt.Sprintf("%s/%s/%s/%s/%s", c.Transport, c.Face, c.Runtime, c.Size, c.VNF)
}

// Limit is what two cores of this machine can do at best, at this moment.
type Limit struct {
	Ring float64 `json:"ring"` // packets/s over a bare ring, 64 bytes written by one core and read by another
	Line float64 `json:"line"` // ns of a round trip of one cache line
	TSC  float64 `json:"tsc"`  // ticks/s of the processor's time stamp counter
}

// Span is when a stream was measured, and what it took of its own programs.
type Span struct {
	// Start is when the first measured packet was due, and End when the last was
	// sent, on CLOCK_MONOTONIC, ns.
	Start time.Duration `json:"start"`
	End   time.Duration `json:"end"`
	// Sender and Sink are the CPUs that each kept busy since it was ready.
	Sender float64 `json:"sender"`
	Sink   float64 `json:"sink"`
}

// Cost is what a trial took of the machine.
type Cost struct {
	// Cores is the CPU time of the chain (instruments, functions, switches) between
	// Span's two moments, by that time. Machine is the share of all CPU time that was
	// in use then, by everyone, 0 to 1.
	Cores   float64 `json:"cores"`
	Machine float64 `json:"machine"`
	// Idle is the CPUs that the chain kept busy while nothing was sent.
	Idle float64 `json:"idle"`
	// Memory is the most that the chain's control group held, bytes; 0: unknown.
	Memory uint64 `json:"memory"`
}

// Ceiling is what the generator does without a port, packets/s.
type Ceiling struct {
	Instrument string  `json:"instrument"`
	Send       float64 `json:"send"`
	Receive    float64 `json:"receive"`
}

// Search is how a rate was searched for.
type Search struct {
	Goal       string  `json:"goal"`                // with its loss ratio, trial length and width
	Trials     int     `json:"trials"`              // that the search took
	Lower      uint64  `json:"lower"`               // packets/s: the highest load that met the goal; 0: none did
	Upper      uint64  `json:"upper"`               // packets/s: the lowest that did not; 0: none
	Throughput float64 `json:"throughput"`          // packets/s to be expected at Lower
	Irregular  string  `json:"irregular,omitempty"` // why the bounds are not as close as the goal asks
}

// check refuses what no trial can have; nil is none.
func (b *Bench) check() error {
	if b == nil {
		return nil
	}
	values := []float64{b.PDR}
	if l := b.Limit; l != nil {
		values = append(values, l.Ring, l.Line, l.TSC)
	}
	if c := b.Cost; c != nil {
		values = append(values, c.Cores, c.Machine, c.Idle)
	}
	if c := b.Ceiling; c != nil {
		values = append(values, c.Send, c.Receive)
	}
	if s := b.Search; s != nil {
		values = append(values, s.Throughput)
	}
	for _, v := range values {
		if !(v >= 0) || math.IsInf(v, 1) {
			return fmt.Errorf("a limit, cost or ceiling of %v", v)
		}
	}
	if s := b.Span; s != nil && s.End < s.Start {
		return fmt.Errorf("a stream from %v to %v", s.Start, s.End)
	}
	return nil
}

// Continue opens a records file to append to it, and returns the records that it
// holds. A last line that a crash tore is cut off first.
func Continue(path string) (*Writer, []Trial, error) {
	trials, _, err := ReadFile(path)
	if err != nil {
		return nil, nil, err
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_APPEND, 0o644)
	if err != nil {
		return nil, nil, fmt.Errorf("continue records file: %w", err)
	}
	if err := cutTorn(f); err != nil {
		return nil, nil, errors.Join(fmt.Errorf("continue records file %s: %w", path, err), f.Close())
	}
	return &Writer{file: f}, trials, nil
}

// cutTorn ends a file with a whole line: a last record that lacks only its
// newline gets it, and what is less than a record goes.
func cutTorn(f *os.File) error {
	info, err := f.Stat()
	if err != nil || info.Size() == 0 {
		return err
	}
	size := info.Size()
	tail := make([]byte, min(size, MaxLine+1))
	if _, err := f.ReadAt(tail, size-int64(len(tail))); err != nil {
		return err
	}
	end := len(tail)
	for end > 0 && tail[end-1] != '\n' {
		end--
	}
	if end == len(tail) {
		return nil
	}
	if _, err := decode(tail[end:]); err == nil {
		_, err = f.Write([]byte("\n"))
		return err
	}
	return f.Truncate(size - int64(len(tail)-end))
}
