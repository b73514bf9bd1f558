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
	QFrames  Quantity = "frames"  // frames of a given size at a given rate, or as fast as the port takes them
	QCeiling Quantity = "ceiling" // the same without a port: the generator's own limit
)

// MarkGeneratorBound marks a rate over 80 % of the generator's rate without a port: it
// measures the generator rather than the link.
const MarkGeneratorBound = "generator-bound"

// GeneratorShare is the share of the generator's ceiling above which a rate is marked.
const GeneratorShare = 0.8

// Bench is the additional data of a matrix trial.
type Bench struct {
	Config Config `json:"config"`
	Load   string `json:"load"` // in the matrix's words
	// Limit was measured just before the trial; nil: it could not be.
	Limit *Limit `json:"limit,omitempty"`
	Span  *Span  `json:"span,omitempty"`
	Cost  *Cost  `json:"cost,omitempty"`
	// Ceiling is the result of QCeiling.
	Ceiling *Ceiling `json:"ceiling,omitempty"`
	// Search is how a searched load was found; the trial then ran at that load. Step
	// counts the search's own trials, from 1.
	Search *Search `json:"search,omitempty"`
	Step   int     `json:"step,omitempty"`
	// PDR is the rate that Load is a share of, packets/s, from the same round; 0: none.
	PDR float64 `json:"pdr,omitempty"`
}

// Config is one configuration of a matrix, in the matrix's words.
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

// Limit is the best that two cores of this machine can do at this moment.
type Limit struct {
	Ring float64 `json:"ring"` // packets/s of 64 bytes over a bare ring between two cores
	Line float64 `json:"line"` // ns per round trip of one cache line
	TSC  float64 `json:"tsc"`  // ticks/s of the time stamp counter
}

// Span is the time span of a stream's measurement, with its programs' CPU use.
type Span struct {
	// Start is when the first measured packet was due, and End when the last was sent,
	// on CLOCK_MONOTONIC, ns.
	Start time.Duration `json:"start"`
	End   time.Duration `json:"end"`
	// Sender and Sink are the CPUs that each has kept busy since it was ready.
	Sender float64 `json:"sender"`
	Sink   float64 `json:"sink"`
}

// Cost is a trial's use of the machine.
type Cost struct {
	// Cores is the chain's CPU time (instruments, functions, switches) during Span,
	// divided by its length. Machine is the share of all CPU time in use then, by all
	// programs, 0 to 1.
	Cores   float64 `json:"cores"`
	Machine float64 `json:"machine"`
	// Idle is the CPUs that the chain kept busy while no packets were sent.
	Idle float64 `json:"idle"`
	// Memory is the peak of the chain's control group, bytes; 0: unknown.
	Memory uint64 `json:"memory"`
	// Power is the mean power of the machine's processor packages during Span, W; 0:
	// unknown, and NoPower may say why.
	Power   float64 `json:"power,omitempty"`
	NoPower string  `json:"no_power,omitempty"`
}

// Ceiling is the generator's rate without a port, packets/s.
type Ceiling struct {
	Instrument string  `json:"instrument"`
	Send       float64 `json:"send"`
	Receive    float64 `json:"receive"`
}

// Most is the highest rate that the generator could measure: the lower of its two. One
// thread at both ends sends and receives in turns, so the times of a packet add up.
func (c Ceiling) Most(oneThread bool) float64 {
	if oneThread && c.Send > 0 && c.Receive > 0 {
		return 1 / (1/c.Send + 1/c.Receive)
	}
	return min(c.Send, c.Receive)
}

// Search describes the search for a rate.
type Search struct {
	Goal       string  `json:"goal"`                // with its loss ratio, trial length and width
	Trials     int     `json:"trials"`              // used by the search
	Lower      uint64  `json:"lower"`               // packets/s: the highest load that met the goal; 0: none did
	Upper      uint64  `json:"upper"`               // packets/s: the lowest that did not; 0: none
	Throughput float64 `json:"throughput"`          // packets/s expected at Lower
	Irregular  string  `json:"irregular,omitempty"` // why the bounds are wider than the goal asks
}

// check refuses impossible values; nil is valid.
func (b *Bench) check() error {
	if b == nil {
		return nil
	}
	values := []float64{b.PDR}
	if l := b.Limit; l != nil {
		values = append(values, l.Ring, l.Line, l.TSC)
	}
	if c := b.Cost; c != nil {
		values = append(values, c.Cores, c.Machine, c.Idle, c.Power)
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

// Continue opens a records file for appending, and returns its records. It first
// truncates a last line that a crash tore.
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

// cutTorn makes a file end with a whole line. A last record that lacks only its newline
// gets it; an incomplete one is removed.
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
