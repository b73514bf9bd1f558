// SPDX-License-Identifier: Apache-2.0

package microbench

import (
	"context"
	"fmt"

	"github.com/drayage/dray/internal/result/stats"
)

// killKinds are the times at which an end is killed, in the probe's order.
var killKinds = []string{
	"under full load", "under full load, broker dead",
	"in set-up: connected", "in set-up: HELLO sent", "in set-up: WELCOME received", "in set-up: OFFER received", "in set-up: MAPPED sent",
	"in set-up: SEALED received", "in set-up: ACTIVE sent",
}

// handshakeKinds is the index of the first kind after a handshake step.
const handshakeKinds = 2

// killHeader is the header of the rows that kill prints.
const killHeader = "  one end dies by kill -9      times  p50,us  p99,us lost leak stall longest no CPU\n"

// kills kills one end of a link repeatedly. The other end survives, and counts
// losses.
func (b Libdray) kills(ctx context.Context, s *Figures) error {
	if b.Kills == 0 {
		return nil
	}
	steps := len(killKinds) - handshakeKinds
	each, few := (b.Kills+steps-1)/steps, (b.Kills+9)/10
	fmt.Fprintf(b.Log, "kill -9: %d times under load, %d without a broker, %d in the handshake\n", b.Kills, few, each*steps)
	fmt.Fprintf(b.Out, "\nkill table (survivor, victim, successor and broker share the cores; longest call\nof the survivor, and how long of it there was no CPU, in ms)\n%s", killHeader)
	times := func(kind int) int {
		switch kind {
		case 0:
			return b.Kills
		case 1:
			return few
		}
		return each
	}
	broken := 0.0
	for kind, name := range killKinds {
		sample, err := b.kill(ctx, fmt.Sprintf("kill %d %d", kind, times(kind)))
		if err != nil {
			return err
		}
		broken += sample.Lost + sample.Leaked
		if err := b.killed(s, name, sample); err != nil {
			return err
		}
	}
	fmt.Fprintln(b.Out)
	if broken > 0 {
		return ErrKills
	}
	return nil
}

// kill runs one kind of kill in its own probe, which forks. The probe exits with
// an error if something was lost, but the sample shows that as well.
func (b Libdray) kill(ctx context.Context, ask string) (Sample, error) {
	p, err := startProbe(ctx, b.Probe)
	if err != nil {
		return Sample{}, err
	}
	sample, err := p.ask(1, "%s", ask)
	endErr := p.end()
	if err == nil && endErr != nil && sample.Lost+sample.Leaked == 0 {
		err = fmt.Errorf("%s: %w", p.name, endErr)
	}
	return sample, err
}

// killed adds a row's figures, and prints it: the table has one line for each kind.
func (b Libdray) killed(s *Figures, name string, k Sample) error {
	p50, err := stats.Quantile(k.Values, 0.5)
	if err != nil {
		return err
	}
	p99, err := stats.Quantile(k.Values, 0.99)
	if err != nil {
		return err
	}
	fmt.Fprintf(b.Out, "  %-28s %5d %7.0f %7.0f %4.0f %4.0f %5.0f %7.1f %6.1f\n", name, len(k.Values),
		p50.Value/1e3, p99.Value/1e3, k.Lost, k.Leaked, k.Stalls, k.Longest/1e6, k.Starved/1e6)

	group := "kill -9 " + name
	row := func(name, unit string, marks ...string) *Figure {
		f := s.Figure(group, name, unit)
		f.marks, f.hidden = marks, true
		return f
	}
	none := func(value float64) string { return "target 0: " + reachedWord(value == 0) }
	row("recovery p50", "ns", "more processes than cores").Quantile(k.Values, 0.5)
	row("recovery p99", "ns", "more processes than cores").Quantile(k.Values, 0.99)
	row("packets published by the dead", "packets").Add(k.Packets)
	row("published and not received", "packets", none(k.Lost)).Add(k.Lost)
	row("buffers and generations leaked", "buffers", none(k.Leaked)).Add(k.Leaked)
	row("stalls of the survivor, over 1 s", "calls", none(k.Stalls)).Add(k.Stalls)
	row("longest call of the survivor", "ns").Add(k.Longest)
	row("of it ready, but without a CPU", "ns").Add(k.Starved)
	return nil
}
