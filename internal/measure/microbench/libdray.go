// SPDX-License-Identifier: Apache-2.0

package microbench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/drayage/dray/internal/host"
)

// Libdray is the bench of libdray. It also measures a bare ring, the current physical
// limit, and the pipes and sockets that applications use without libdray.
type Libdray struct {
	Probe        string // dray-probe
	Unchecked    string // the same with a library without checks
	Classless    string // the same with a library without traffic classes
	Instructions string // instructions.sh
	Rounds       int
	Kills        int // of an end under load; 0: none
	Quick        bool
	Out, Log     io.Writer // tables; progress
}

// The size of each measurement.
const (
	ratePackets  = 2_000_000
	roundTrips   = 10_000
	socketMS     = 30
	socketTrips  = 200
	wakeUps      = 300
	instructions = 100_000 // no bound: the count is only a figure here
)

// Groups of figures.
const (
	groupRates  = "one direction, burst 32"
	groupTrips  = "round trip of one 64 B packet, p50"
	groupCount  = "instructions of a 64 B packet, both ends and the application"
	groupMode   = "adaptive mode, asleep"
	groupSetUp  = "set-up: from dray_open to the first packet; the broker of the C tests"
	missingTool = "valgrind, or the program built without checks, is missing"
)

// ErrKills means that a killed end cost packets or buffers.
var ErrKills = errors.New("a kill lost a packet, or leaked a buffer")

// Run measures everything, prints it, and returns the figures.
func (b Libdray) Run(ctx context.Context) (*Figures, error) {
	s := &Figures{}
	if err := s.LookAtMachine(ctx, 2); err != nil {
		return nil, err
	}
	fmt.Fprint(b.Out, wrap("", "", "reference: bare ring of 1024 slots of 64 B, burst 32; libdray: 1024 slots, burst 32, header: 16 B; "+
		"rates: median windows of 65536 packets"))
	for _, section := range []func(context.Context, *Figures) error{b.rates, b.classes, b.instructions, b.adaptive, b.asleep, b.setUps} {
		if err := section(ctx, s); err != nil {
			return nil, err
		}
	}
	err := b.kills(ctx, s)
	if err != nil && !errors.Is(err, ErrKills) {
		return nil, err
	}
	s.Print(b.Out)
	s.PrintTargets(b.Out)
	return s, err
}

// sampled is a figure whose samples are medians of one case of a probe.
type sampled struct {
	figure *Figure
	probe  *probe
	ask    string
}

func (c sampled) add(round int) (Sample, error) {
	if c.figure.missing != "" {
		return Sample{}, nil
	}
	sample, err := c.probe.ask(round, "%s", c.ask)
	if err != nil {
		return sample, err
	}
	if len(sample.Values) == 0 {
		return sample, fmt.Errorf("%s: %s: no value", c.probe.name, c.ask)
	}
	c.figure.Add(median(sample.Values))
	return sample, nil
}

func median(values []float64) float64 {
	f := Figure{samples: values}
	return f.Value()
}

// rates measures rates and round trips in turns.
func (b Libdray) rates(ctx context.Context, s *Figures) (err error) {
	sockets, noUDP := overVeth()
	var files []*os.File
	if noUDP == nil {
		files = sockets[:]
	}
	p, err := startProbe(ctx, b.Probe, files...)
	for _, f := range files {
		_ = f.Close() // the probe has its own
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.end()) }()

	unchecked, uncheckedErr := startProbe(ctx, b.Unchecked)
	if uncheckedErr == nil {
		defer func() { err = errors.Join(err, unchecked.end()) }()
	}
	cases, link := b.rateCases(s, p, unchecked)
	if uncheckedErr != nil {
		s.Figure(groupRates, "libdray without checks and stamps, 64 B header", "packets/s").Missing("the program built without checks is missing")
	}
	if noUDP != nil {
		s.Figure(groupRates, udpName+", 64 B", "packets/s").Missing("needs root and veth: " + noUDP.Error())
		s.Figure(groupTrips, udpName, "ns").Missing("needs root and veth: " + noUDP.Error())
	}
	var trips []float64
	for round := range b.Rounds {
		fmt.Fprintf(b.Log, "rates and round trips: round %d of %d\n", round+1, b.Rounds)
		for _, c := range cases {
			sample, err := c.add(round + 1)
			if err != nil {
				return err
			}
			if c.figure == link {
				trips = append(trips, sample.Values...)
			}
		}
	}
	for _, q := range []struct {
		name string
		q    float64
	}{{"p99", 0.99}, {"p99.9", 0.999}, {"p99.99", 0.9999}} {
		s.Figure(groupTrips, "libdray, 64 B, "+q.name, "ns").Quantile(trips, q.q)
	}
	return nil
}

const udpName = "UDP socket over veth"

// rateCases are the cases of a round in order, and the figure of libdray's round trips.
func (b Libdray) rateCases(s *Figures, p, unchecked *probe) (cases []sampled, link *Figure) {
	rate := func(name string, of *Figure, at *probe, ask string) *Figure {
		f := s.Figure(groupRates, name, "packets/s").Of(of)
		cases = append(cases, sampled{f, at, ask})
		return f
	}
	trip := func(name string, of *Figure, ask string) *Figure {
		f := s.Figure(groupTrips, name, "ns").Of(of)
		cases = append(cases, sampled{f, p, ask})
		return f
	}
	linkRate := func(size, all int) string { return fmt.Sprintf("link-rate %d %d %d", size, all, ratePackets) }

	ring := rate("bare ring, 64 B written and read", nil, p, fmt.Sprintf("bare-ring %d", ratePackets))
	small := rate("libdray, 64 B, header written and read", ring, p, linkRate(64, 0))
	rate("libdray, 64 B, all written and read", ring, p, linkRate(64, 1))
	for _, size := range []int{1518, 9000} {
		f := rate(fmt.Sprintf("libdray, %d B, header written and read", size), small, p, linkRate(size, 0))
		f.AtLeast(0.8, small, "the rate of 64 B")
	}
	trip("bare cache line", nil, fmt.Sprintf("bare-line %d", roundTrips))
	bare := trip("bare ring, 64 B", nil, fmt.Sprintf("bare-trips %d", roundTrips))
	link = trip("libdray, 64 B", bare, fmt.Sprintf("link-trips %d", roundTrips))
	rate("libdray without checks and stamps, 64 B header", small, unchecked, linkRate(64, 0))
	for kind, name := range []string{"pipe", "UNIX datagram socket", udpName} {
		rate(name+", 64 B", small, p, fmt.Sprintf("socket-rate %d %d", kind, socketMS))
		trip(name, bare, fmt.Sprintf("socket-trips %d %d", kind, socketTrips))
	}
	small.AtLeast(0.75, ring, "the bare ring")
	small.AtLeast(0.6, ring, "the bare ring, the floor")
	link.AtMost(1.6, bare, "the bare ring's round trip")
	return cases, link
}

// instructions counts instructions under callgrind, and prints their functions.
func (b Libdray) instructions(ctx context.Context, s *Figures) error {
	fmt.Fprintln(b.Log, "instructions per packet, under callgrind")
	checked := s.Figure(groupCount, "libdray", "instructions")
	unchecked := s.Figure(groupCount, "libdray without checks and stamps", "instructions")
	added := s.Figure(groupCount, "added by checks and stamps", "instructions")

	n, where := b.count(ctx, b.Probe, "--where")
	fmt.Fprintf(b.Out, "where the instructions go, per packet (link_alone: the application):\n%s", where)
	m, _ := b.count(ctx, b.Unchecked)
	if n > 0 {
		checked.Add(n)
	} else {
		checked.Missing("valgrind is missing")
	}
	if n > 0 && m > 0 {
		unchecked.Add(m)
		added.Add(n - m)
	} else {
		unchecked.Missing(missingTool)
		added.Missing(missingTool)
	}
	return ctx.Err()
}

// count is the instructions per packet, and the script's following lines; 0 if it fails.
func (b Libdray) count(ctx context.Context, program string, more ...string) (n float64, where string) {
	// It also fails above the bound, so only its output matters.
	out, _ := host.Helper{Program: b.Instructions, Args: append([]string{program, fmt.Sprint(instructions)}, more...), Limit: 5 * time.Minute}.Run(ctx)
	first, rest, _ := strings.Cut(out.Out, "\n")
	if _, err := fmt.Sscanf(first, "%f", &n); err != nil {
		return 0, ""
	}
	for _, line := range strings.SplitAfter(rest, "\n") {
		if line != "" {
			where += "  " + line
		}
	}
	return n, where
}
