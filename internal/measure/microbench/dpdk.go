// SPDX-License-Identifier: Apache-2.0

package microbench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/drayage/dray/internal/host"
)

// DPDK is the bench of net_dray and of DPDK's own links between two applications.
type DPDK struct {
	Driver    string // librte_net_dray.so
	Generator string // draygen-dpdk, for native ports and switches
	VNF       string // dray-vnf, for l2fwd
	Broker    string // serve: a broker with one link
	Cost      string // dray-pmd-cost
	Trips     string // dray-pmd-trips
	Probe     string // dray-probe, for libdray without a generator
	Limit     string // dray-limit
	Scripts   string // directory of switch.sh and container.sh

	Rounds int           // at most
	Time   time.Duration // no round begins that would end later
	Window time.Duration // of each measurement
	Quick  bool          // no profiles of rows that miss their targets
	Out    io.Writer     // tables
	Log    io.Writer     // progress
}

// grace allows for a round, or profiles, that take longer than expected.
const grace = 20 * time.Second

// Run measures round after round, prints the tables, and returns the figures.
func (b DPDK) Run(ctx context.Context) (s *Figures, err error) {
	began := time.Now()
	for _, path := range []*string{&b.Driver, &b.Generator, &b.VNF, &b.Broker, &b.Cost, &b.Trips, &b.Probe, &b.Limit, &b.Scripts} {
		if *path, err = filepath.Abs(*path); err != nil {
			return nil, err
		}
	}
	if _, err := os.Stat(b.Driver); err != nil {
		return nil, fmt.Errorf("the driver: %w", err)
	}
	s = &Figures{}
	if err := s.LookAtMachine(ctx, 2); err != nil {
		return nil, err
	}
	p := &place{DPDK: b, ctx: ctx, end: began.Add(b.Time + grace)}
	if p.cpus, err = twoCPUs(); err != nil {
		return nil, err
	}
	if p.dir, err = os.MkdirTemp("", "dray-pmd-bench-"); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(p.dir)) }()

	r := &dpdkRows{place: p, figures: s}
	defer r.finish()
	r.start()
	r.measureAll(began)
	r.setTargets()
	if !b.Quick {
		r.explain()
	}
	r.finish()
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	s.Print(b.Out)
	s.PrintTargets(b.Out)
	return s, nil
}

// twoCPUs are the bench's first two CPUs, or its only CPU twice.
func twoCPUs() (cpus [2]int, err error) {
	all, err := host.AllowedCPUs()
	if err != nil {
		return cpus, err
	}
	cpus[0] = all[0]
	cpus[1] = all[min(1, len(all)-1)]
	return cpus, nil
}

// dpdkRow is a figure, the pair that it is measured on, and how.
type dpdkRow struct {
	figure *Figure
	pair   *pair
	sample func(*pair) float64 // 0: the pair has failed
}

// dpdkRows are all measurements of a round.
type dpdkRows struct {
	*place
	figures *Figures
	pairs   []*pair

	null, ways [2][]dpdkRow // of each size
	copies     [2][]dpdkRow // of each size: copied, in place
	ceilings   []dpdkRow
	native     []dpdkRow // of each size
	trips      []dpdkRow
	switches   []dpdkRow // net_dray, vhost-user
	forwards   []dpdkRow // process, container
	cycles     []*Figure // when forwarding

	ring, line, copied, libdray *Figure

	probe *probe
	done  bool
}

// measureAll measures rounds while there is time for another, but at least one. A
// round that runs out of time is dropped, since ratios compare whole rounds.
func (r *dpdkRows) measureAll(began time.Time) {
	end, last := began.Add(r.Time), time.Duration(0)
	for i := 0; i < r.Rounds && (i == 0 || time.Now().Add(last).Before(end)); i++ {
		start := time.Now()
		fmt.Fprintf(r.Log, "net_dray against memif, vhost-user, switches and the null device: round %d of at most %d\n", i+1, r.Rounds)
		r.measure(i)
		if r.late() {
			if i > 0 {
				r.figures.Keep(i)
			}
			r.figures.Mark("too little time: the machine is slow, or busy")
			return
		}
		last = time.Since(start)
	}
}

// measure measures every row once. The order of peers changes each round.
func (r *dpdkRows) measure(round int) {
	if round == 0 {
		r.costs() // once: it takes seconds, and does not depend on the distance of cores
	}
	r.physical(round)
	for size := range r.ways {
		r.takeAll(r.null[size], 0)
		r.takeAll(r.ways[size], round)
	}
	for size := range r.copies {
		r.takeAll(r.copies[size], round)
	}
	r.takeAll(r.ceilings, 0)
	r.takeAll(r.native, 0)
	r.takeAll(r.trips, round)
	for i := range r.switches {
		r.takeAll(r.switches[(i+round)%2:][:1], 0)
		r.takeForward((i + round) % 2)
	}
}

// takeAll takes a sample of each row, starting with a different one each round.
func (r *dpdkRows) takeAll(rows []dpdkRow, round int) {
	for i := range rows {
		row := rows[(i+round)%len(rows)]
		if !r.tooLate(row.figure) {
			take(row.figure, row.pair, row.sample(row.pair))
		}
	}
}

func (r *dpdkRows) takeForward(i int) {
	row := r.forwards[i]
	if r.tooLate(row.figure, r.cycles[i]) {
		return
	}
	rate, cycles := r.forwardRate(row.pair)
	take(row.figure, row.pair, rate)
	take(r.cycles[i], row.pair, cycles)
}

// tooLate reports whether the time is up: then nothing is measured.
func (r *dpdkRows) tooLate(figures ...*Figure) bool {
	if !r.late() {
		return false
	}
	for _, f := range figures {
		if len(f.samples) == 0 && f.missing == "" {
			f.Missing("no time was left")
		}
	}
	return true
}

// take adds a sample. If there is none, the figure is missing entirely, with the
// reason, since rounds are compared with each other.
func take(f *Figure, t *pair, sample float64) {
	switch {
	case sample > 0:
		f.Add(sample)
	case t.why != "":
		f.Missing(t.why)
	default:
		f.Missing("nothing was counted")
	}
}

// costs adds the figures of dray-pmd-cost: the minimum of its trials, since other
// work on the machine only adds CPU time.
func (r *dpdkRows) costs() {
	missing := func(why string) {
		fmt.Fprintf(r.Log, "dray-pmd-cost: %s\n", why)
		r.figures.Figure(groupCost, "all frames", "ns").Missing("dray-pmd-cost: " + why)
	}
	p, err := startProbe(r.ctx, r.Cost)
	if err != nil {
		missing(err.Error())
		return
	}
	for {
		sample, err := p.read()
		if err != nil {
			break
		}
		name := fmt.Sprintf("%s, %d B", sample.Case, sample.Size)
		r.figures.Figure(groupCost, name, "ns").Add(slices.Min(sample.Values))
	}
	if err := p.end(); err != nil {
		missing(fmt.Sprintf("%v: %s", err, host.LastLines(p.err.String())))
	}
}

// physical measures the base of all rows: the current physical limit, and libdray
// without DPDK or a generator.
func (r *dpdkRows) physical(round int) {
	var limit struct {
		Ring float64 `json:"ring_pps"`
		Line float64 `json:"line_ns"`
	}
	out, err := host.Helper{Program: r.Limit, Args: []string{"--packets", fmt.Sprint(ratePackets), "--trips", "4000"}}.Output(r.ctx)
	if err == nil {
		err = json.Unmarshal([]byte(out), &limit)
	}
	if err != nil {
		r.ring.Missing(err.Error())
		r.line.Missing(err.Error())
	} else {
		r.ring.Add(limit.Ring)
		r.line.Add(limit.Line)
	}
	if r.probe == nil {
		return
	}
	r.ask(round, r.copied, fmt.Sprintf("bare-copy %d", 10*ratePackets))
	r.ask(round, r.libdray, fmt.Sprintf("link-rate 64 0 %d", ratePackets))
}

// ask adds a sample of the probe.
func (r *dpdkRows) ask(round int, f *Figure, what string) {
	sample, err := r.probe.ask(round+1, "%s", what)
	if err != nil {
		f.Missing(err.Error())
		return
	}
	f.Add(median(sample.Values))
}

// finish ends all started programs.
func (r *dpdkRows) finish() {
	if r.done {
		return
	}
	r.done = true
	for _, t := range r.pairs {
		t.finish()
	}
	if r.probe != nil {
		_ = r.probe.end() // its figures are complete or missing
	}
}
