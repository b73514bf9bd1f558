// SPDX-License-Identifier: Apache-2.0

package microbench

import (
	"context"
	"errors"
	"fmt"
	"io"
)

// VNF is the bench of dray-vnf: cycles per packet in each function, between rings of
// one process.
type VNF struct {
	Probe  string // dray-vnf-probe
	Rounds int
	Out    io.Writer
}

const groupVNF = "dray-vnf, one core: bursts of 32 frames, 4096 different, headers in cache"

// vnfVariants are the cases of dray-vnf-probe, in its order.
var vnfVariants = []string{
	"none", "l2fwd", "l3fwd, 1 route", "l3fwd, 1,000,000 routes", "bng, from the customers, 32,768 users", "bng, to them",
	"gtpu, from N3, 10,000 tunnels", "gtpu, to N3",
}

// Run measures all variants in turns, prints them, and returns the figures.
func (b VNF) Run(ctx context.Context) (s *Figures, err error) {
	s = &Figures{}
	if err := s.LookAtMachine(ctx, 1); err != nil {
		return nil, err
	}
	p, err := startProbe(ctx, b.Probe)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err = errors.Join(err, p.end()); err != nil {
			s = nil
		}
	}()
	var hz float64
	for round := range b.Rounds + 1 {
		for i, name := range vnfVariants {
			sample, err := p.ask(round, "pass %d", i)
			if err != nil {
				return nil, err
			}
			hz = sample.TSCHz
			if round == 0 { // warms up
				continue
			}
			f := s.Figure(groupVNF, name, "cycles/packet")
			f.Add(median(sample.Values))
			if i > 0 {
				f.Of(s.Figure(groupVNF, vnfVariants[0], ""))
			}
		}
	}
	fmt.Fprintf(b.Out, "cycles of the time-stamp counter, %.2f GHz\n", hz/1e9)
	s.Print(b.Out)
	return s, nil
}
