// SPDX-License-Identifier: Apache-2.0

package microbench

import (
	"context"
	"errors"
	"fmt"
	"io"
)

// IQ is the bench of libdray_iq: subframes of I/Q samples next to ZeroMQ, whose
// receiver requests each subframe, as srsRAN's radio does.
type IQ struct {
	Probe  string // dray-iq-probe
	Rounds int
	Out    io.Writer
}

// iqCell is a cell of LTE, by its resource blocks.
type iqCell struct{ prb, bytes int } // of a subframe: 1 ms of samples of 8 B

var iqCells = []iqCell{{6, 15_360}, {25, 46_080}, {50, 92_160}, {100, 184_320}}

// iqOvers are the probe's names of what carries samples; the others are compared with
// the first.
var iqOvers = []struct{ key, name string }{
	{"dray", "libdray messages, shm"}, {"zmq-ipc", "ZeroMQ, ipc"}, {"zmq-tcp", "ZeroMQ, TCP over veth"},
}

const (
	iqRate  = 1000        // subframes per second in real time
	iqPaced = 1000        // subframes of a paced measurement
	iqMost  = 5000        // of one without a pace, in which
	iqBytes = 200_000_000 // are at most so many bytes
)

// The probe's values, in its order.
const (
	iqPerSecond = iota
	iqCPU
	iqMedian
	iqTail
	iqValues
)

// Run measures everything in turns, prints it, and returns the figures.
func (b IQ) Run(ctx context.Context) (s *Figures, err error) {
	s = &Figures{}
	if err := s.LookAtMachine(ctx, 2); err != nil {
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
	for round := range b.Rounds {
		for _, c := range iqCells {
			for i := range iqOvers {
				if err := c.measure(s, p, round, i); err != nil {
					return nil, err
				}
			}
		}
	}
	fmt.Fprint(b.Out, wrap("", "", "paced: 1000 subframes per second, from the sender's buffer to the receiver's; real-time factor: subframes per millisecond, without a pace"))
	s.Print(b.Out)
	return s, nil
}

// measure takes a sample of each figure of one cell over one transport.
func (c iqCell) measure(s *Figures, p *probe, round, over int) error {
	paced, err := c.ask(p, round, over, iqRate, iqPaced)
	if err != nil {
		return err
	}
	free, err := c.ask(p, round, over, 0, min(iqMost, iqBytes/c.bytes))
	if err != nil {
		return err
	}
	c.add(s, over, "CPU per subframe, both ends", "us", paced[iqCPU])
	c.add(s, over, "one way, p50", "us", paced[iqMedian])
	c.add(s, over, "one way, p99", "us", paced[iqTail])
	c.add(s, over, "real-time factor", "", free[iqPerSecond]/iqRate)
	return nil
}

func (c iqCell) ask(p *probe, round, over, rate, count int) ([]float64, error) {
	sample, err := p.ask(round, "%s %d %d %d", iqOvers[over].key, c.bytes, rate, count)
	if err != nil {
		return nil, err
	}
	if len(sample.Values) != iqValues {
		return nil, fmt.Errorf("%s: %s: %d values, want %d", p.name, sample.Case, len(sample.Values), iqValues)
	}
	return sample.Values, nil
}

func (c iqCell) add(s *Figures, over int, what, unit string, value float64) {
	group := fmt.Sprintf("%d PRB, %d B per subframe: %s", c.prb, c.bytes, what)
	f := s.Figure(group, iqOvers[over].name, unit)
	f.Add(value)
	if over > 0 {
		f.Of(s.Figure(group, iqOvers[0].name, unit))
	}
}
