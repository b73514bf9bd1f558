// SPDX-License-Identifier: Apache-2.0

package microbench

import (
	"context"
	"errors"
	"fmt"
)

// groupClasses are ports whose library queues what they send.
const (
	groupClasses   = "traffic classes of the sender, 64 B, burst 32, 16 B of header"
	queuedPackets  = 1_000_000
	queuedKPPS     = 10_000 // the rate that a classless discipline should reach
	reached        = 0.98   // of that
	nothing        = 0.97   // of the rate without the code: what cannot be told from it
	classlessBuilt = "the program built without classes is missing"
)

// queues are what one class of a port may have, by its numbers in PROTOCOL.md,
// section 12: scheduler and discipline.
var queues = []struct {
	name                  string
	scheduler, discipline int
}{
	{"FIFO by packets", 0, 0},
	{"FIFO by bytes", 0, 1},
	{"SFQ", 0, 2},
	{"CoDel", 0, 3},
	{"FQ-CoDel", 0, 4},
	{"slot deadlines", 0, 5},
	{"strict priority", 1, 0},
	{"HTB", 2, 0},
	{"HFSC", 3, 0},
}

// classes measures what unused classes cost, and how fast each discipline is while
// packets wait.
func (b Libdray) classes(ctx context.Context, s *Figures) (err error) {
	with, err := startProbe(ctx, b.Probe)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, with.end()) }()
	without, missing := startProbe(ctx, b.Classless)
	if missing == nil {
		defer func() { err = errors.Join(err, without.end()) }()
	}
	cases, full := b.classCases(s, with, without)
	for round := range b.Rounds {
		fmt.Fprintf(b.Log, "traffic classes: round %d of %d\n", round+1, b.Rounds)
		for _, c := range cases {
			if _, err := c.add(round + 1); err != nil {
				return err
			}
		}
	}
	for _, f := range full {
		f.Mark(fmt.Sprintf("target %d Mpps: %s", queuedKPPS/1000, reachedWord(f.Value() >= reached*queuedKPPS*1000)))
	}
	return nil
}

// classCases are the cases of a round, and the figures of full queues.
func (b Libdray) classCases(s *Figures, with, without *probe) (cases []sampled, full []*Figure) {
	plain := fmt.Sprintf("link-rate 64 0 %d", ratePackets)
	bare := s.Figure(groupClasses, "libdray built without traffic classes", "packets/s")
	unused := s.Figure(groupClasses, "libdray, a port without classes", "packets/s").Of(bare)
	cases = []sampled{{bare, without, plain}, {unused, with, plain}}
	if without == nil {
		bare.Missing(classlessBuilt)
	}
	unused.AtLeast(nothing, bare, "the rate without the code for classes")
	for _, q := range queues {
		f := s.Figure(groupClasses, fmt.Sprintf("%s, full, at %d Mpps", q.name, queuedKPPS/1000), "packets/s").Of(unused)
		full = append(full, f)
		cases = append(cases, sampled{f, with, fmt.Sprintf("queued-rate %d %d %d %d", q.scheduler, q.discipline, queuedKPPS, queuedPackets)})
	}
	return cases, full
}
