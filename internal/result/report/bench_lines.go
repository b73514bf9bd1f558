// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"slices"
	"strings"

	"github.com/drayage/dray/internal/result/record"
	"github.com/drayage/dray/internal/result/stats"
	"github.com/drayage/dray/internal/spec/chain"
	"github.com/drayage/dray/internal/spec/matrix"
)

// BenchLine is a row of a bench's table: a configuration at a load, with its latency at
// a load that leaves the link headroom.
type BenchLine struct {
	Config  record.Config `json:"config"`
	Skipped string        `json:"skipped,omitempty"` // why there are no figures
	Fix     string        `json:"fix,omitempty"`
	Untried bool          `json:"untried,omitempty"`

	Load    string      `json:"load,omitempty"` // for Rate
	Rate    *BenchValue `json:"rate,omitempty"` // packets/s received
	Bits    *BenchValue `json:"bits,omitempty"` // bit/s of frames with FCS
	Lost    *Loss       `json:"lost,omitempty"`
	Search  string      `json:"search,omitempty"` // the goal of a searched rate
	Cost    *BenchCost  `json:"cost,omitempty"`
	Limit   *BenchRatio `json:"of_limit,omitempty"`    // Rate by the bare ring's
	Base    *BenchRatio `json:"of_baseline,omitempty"` // Rate by the baseline's
	Ceiling float64     `json:"ceiling,omitempty"`     // packets/s of the generator without a port

	LatencyLoad string          `json:"latency_load,omitempty"`        // for Latency
	Latency     []BenchQuantile `json:"latency,omitempty"`             // one way
	Longest     int64           `json:"longest,omitempty"`             // ns
	Samples     int64           `json:"samples,omitempty"`             // of latency
	LatencyBase *BenchRatio     `json:"latency_of_baseline,omitempty"` // of medians
	// LatencyLimit is the median over half a cache line's round trip.
	LatencyLimit *BenchRatio `json:"latency_of_limit,omitempty"`

	Privileges string   `json:"privileges"`
	Isolation  string   `json:"isolation,omitempty"`
	Copies     int      `json:"copies"`
	Marks      []string `json:"marks"`
	Trials     []string `json:"trials"`           // ids of the records
	Failed     []string `json:"failed,omitempty"` // those without a result
	Error      string   `json:"error,omitempty"`  // of the last failed trial
	Outliers   []string `json:"outliers,omitempty"`
}

// BenchValue is a mean over rounds with its two-sided 95 % interval; see meanOf.
type BenchValue struct {
	Mean   float64   `json:"mean"`
	Low    *float64  `json:"low,omitempty"`
	High   *float64  `json:"high,omitempty"`
	Values []float64 `json:"values"`
}

// BenchRatio is the geometric mean of paired ratios with its 95 % interval.
type BenchRatio struct {
	Ratio      float64  `json:"ratio"`
	Low        *float64 `json:"low,omitempty"`
	High       *float64 `json:"high,omitempty"`
	Pairs      int      `json:"pairs"`
	Indistinct bool     `json:"indistinguishable"` // the interval includes 1
	Method     string   `json:"method,omitempty"`
}

// BenchQuantile is a percentile of all samples together, and the 95 % interval of its
// mean over rounds, as far as each round supports it.
type BenchQuantile struct {
	Quantile
	Low  *float64 `json:"low,omitempty"`  // ns
	High *float64 `json:"high,omitempty"` // ns
}

// BenchCost is the cost of the rate.
type BenchCost struct {
	Cores   *BenchValue `json:"cores"`            // CPUs: instruments, functions and switches
	Machine *BenchValue `json:"machine"`          // share of all CPU time, 0 to 1
	Idle    *BenchValue `json:"idle"`             // CPUs while nothing was sent
	Cycles  *BenchValue `json:"cycles,omitempty"` // TSC ticks × cores per received packet
	Memory  *BenchValue `json:"memory,omitempty"` // bytes
}

// benchLines summarises the records of a bench.
func benchLines(d *BenchData) []BenchLine {
	b := &benchSums{run: &d.Run, by: map[string][]record.Trial{}}
	for _, t := range d.Trials {
		if t.Bench != nil && t.Bench.Step == 0 && !t.Warmup {
			key := benchKey(t.Quantity, t.Bench.Config, t.Bench.Load)
			b.by[key] = append(b.by[key], t)
		}
	}
	var lines []BenchLine
	for _, row := range d.Run.Rows {
		lines = append(lines, b.row(row)...)
	}
	return lines
}

func benchKey(q record.Quantity, c record.Config, load string) string {
	return fmt.Sprintf("%s %s %s", q, c, load)
}

type benchSums struct {
	run *BenchRun
	by  map[string][]record.Trial
}

func (b *benchSums) trials(c record.Config, load string) []record.Trial {
	return b.by[benchKey(record.QFrames, c, load)]
}

// row is one configuration's lines: one for each load that is not a stated rate, with
// latency at the first stated rate. Each further stated rate and share of PDR has its
// own line.
func (b *benchSums) row(row BenchRow) []BenchLine {
	if row.Skipped != "" {
		return []BenchLine{b.line(row, "", "")}
	}
	var most, stated, shares []string
	for _, l := range b.run.Matrix.Loads {
		switch {
		case l.Stated():
			stated = append(stated, l.String())
		case l.OfPDR:
			shares = append(shares, l.String())
		default:
			most = append(most, l.String())
		}
	}
	var lines []BenchLine
	for _, load := range most {
		if len(stated) > 0 {
			lines = append(lines, b.line(row, load, stated[0]))
		} else {
			lines = append(lines, b.line(row, load, load))
		}
	}
	if len(most) > 0 && len(stated) > 0 {
		stated = stated[1:]
	}
	for _, load := range append(stated, shares...) {
		lines = append(lines, b.line(row, load, load))
	}
	return lines
}

func (b *benchSums) line(row BenchRow, load, latencyLoad string) BenchLine {
	l := BenchLine{
		Config: row.Config, Skipped: row.Skipped, Fix: row.Fix, Untried: row.Untried, Load: load,
		Privileges: row.Privileges, Isolation: row.Isolation, Copies: row.Copies, Marks: []string{}, Trials: []string{},
	}
	if row.Skipped != "" {
		return l
	}
	rates := b.trials(row.Config, load)
	l.count(rates)
	b.rate(&l, rates)
	delays := rates
	if latencyLoad != load {
		delays = b.trials(row.Config, latencyLoad)
		l.count(delays)
	}
	l.LatencyLoad = latencyLoad
	b.latency(&l, delays)
	// A transport that ran is not untried.
	l.Untried = l.Untried && len(l.Trials) == len(l.Failed)
	return l
}

// count collects a line's records and their marks.
func (l *BenchLine) count(trials []record.Trial) {
	for _, t := range trials {
		l.Trials = append(l.Trials, t.ID)
		if t.Error != "" {
			l.Failed, l.Error = append(l.Failed, t.ID), t.Error
		}
		for _, m := range t.Marks {
			if !slices.Contains(l.Marks, m) {
				l.Marks = append(l.Marks, m)
			}
		}
	}
	slices.Sort(l.Marks)
}

// withResult are the trials with a result.
func withResult(trials []record.Trial) []record.Trial {
	return slices.DeleteFunc(slices.Clone(trials), func(t record.Trial) bool {
		return t.Error != "" || t.Delivery == nil
	})
}

// benchRate is a trial's rate, packets/s.
func benchRate(t record.Trial) float64 {
	if t.Bench.Search != nil {
		return t.Bench.Search.Throughput
	}
	return float64(t.Delivery.PacketRate)
}

// markNotNarrowed marks a searched rate whose bounds are wider than the goal asks: the
// rate may be higher.
const markNotNarrowed = "at least"

func (b *benchSums) rate(l *BenchLine, all []record.Trial) {
	trials := withResult(all)
	if len(trials) == 0 {
		return
	}
	values := valuesOf(trials, benchRate)
	l.Rate = benchValue(values)
	bits := 8 * frameLength(l.Config.Size)
	l.Bits = benchValue(valuesOf(trials, func(t record.Trial) float64 { return bits * benchRate(t) }))
	l.Lost = &Loss{}
	for i, t := range trials {
		l.Lost.Sent += t.Delivery.Sent
		l.Lost.Lost += t.Delivery.Lost
		l.Lost.ReceiverDrops += t.Delivery.ReceiverDrops
		if stats.Outliers(values)[i] {
			l.Outliers = append(l.Outliers, t.ID)
		}
		if t.Bench.Search != nil {
			l.Search = t.Bench.Search.Goal
			if t.Bench.Search.Irregular != "" && !slices.Contains(l.Marks, markNotNarrowed) {
				l.Marks = append(l.Marks, markNotNarrowed)
			}
		}
	}
	l.Cost = benchCost(trials)
	if l.Load == matrix.LoadMax || l.Search != "" {
		b.ratios(l, trials)
	}
}

// ratios compares a rate with the limit, the baseline and the generator.
func (b *benchSums) ratios(l *BenchLine, trials []record.Trial) {
	var pairs []stats.Pair
	for _, t := range trials {
		if t.Bench.Limit != nil {
			pairs = append(pairs, stats.Pair{A: benchRate(t), B: t.Bench.Limit.Ring})
		}
	}
	l.Limit = benchRatio(pairs, b.run.Seed)
	if base, ok := b.baseline(l.Config); ok {
		l.Base = benchRatio(paired(trials, withResult(b.trials(base, l.Load)), benchRate), b.run.Seed)
	}
	l.Ceiling = b.ceiling(l.Config, slices.Contains(l.Marks, record.MarkFewCPUs))
	if l.Ceiling > 0 && l.Rate.Mean > record.GeneratorShare*l.Ceiling {
		l.Marks = append(l.Marks, record.MarkGeneratorBound)
	}
}

// baseline is the configuration to compare with: the same with the baseline's
// transport, or with that transport's own face.
func (b *benchSums) baseline(c record.Config) (record.Config, bool) {
	want, found, ok := c, record.Config{}, false
	want.Transport = b.run.Baseline
	for _, row := range b.run.Rows {
		have := row.Config
		if row.Skipped != "" || have.Transport != want.Transport || have.Runtime != want.Runtime || have.Size != want.Size || have.VNF != want.VNF {
			continue
		}
		if have.Face == want.Face {
			return have, have != c
		}
		if !ok {
			found, ok = have, true
		}
	}
	return found, ok && found != c
}

// paired are the values of the rounds that both have.
func paired(a, b []record.Trial, value func(record.Trial) float64) []stats.Pair {
	var pairs []stats.Pair
	for _, x := range a {
		for _, y := range b {
			if x.Round == y.Round {
				pairs = append(pairs, stats.Pair{A: value(x), B: value(y)})
			}
		}
	}
	return pairs
}

// ceiling is the generator's limit without a port, as a mean over rounds; 0: not measured.
func (b *benchSums) ceiling(c record.Config, oneThread bool) float64 {
	sum, n := 0.0, 0
	for _, face := range []string{c.Face, string(chain.FaceNetdev)} {
		for _, t := range b.by[benchKey(record.QCeiling, record.Config{Face: face, Size: c.Size}, matrix.LoadMax)] {
			if ceiling := t.Bench.Ceiling; ceiling != nil && t.Error == "" {
				sum, n = sum+ceiling.Most(oneThread), n+1
			}
		}
		if n > 0 {
			return sum / float64(n)
		}
	}
	return 0
}

func benchCost(trials []record.Trial) *BenchCost {
	var cores, machine, idle, cycles, memory []float64
	for _, t := range trials {
		c := t.Bench.Cost
		if c == nil {
			continue
		}
		cores, machine, idle = append(cores, c.Cores), append(machine, c.Machine), append(idle, c.Idle)
		if c.Memory > 0 {
			memory = append(memory, float64(c.Memory))
		}
		if rate := float64(t.Delivery.PacketRate); t.Bench.Limit != nil && rate > 0 {
			cycles = append(cycles, t.Bench.Limit.TSC*c.Cores/rate)
		}
	}
	if len(cores) == 0 {
		return nil
	}
	return &BenchCost{Cores: benchValue(cores), Machine: benchValue(machine), Idle: benchValue(idle), Cycles: benchValue(cycles), Memory: benchValue(memory)}
}

// latency merges the one-way times of all rounds.
func (b *benchSums) latency(l *BenchLine, all []record.Trial) {
	trials := slices.DeleteFunc(withResult(all), func(t record.Trial) bool { return t.OneWay == nil })
	var each []*stats.Dist
	for _, t := range trials {
		dist, err := stats.NewDist(t.OneWay.Latency, 0, 0)
		if err != nil || dist.Count() == 0 {
			continue
		}
		each = append(each, dist)
	}
	if len(each) == 0 {
		return
	}
	pool := stats.Pool(each...)
	l.Samples = pool.Count()
	_, l.Longest, _ = pool.Range()
	for _, p := range Percentiles {
		q := BenchQuantile{Quantile: quantile(pool, p)}
		if v := benchValue(quantilesOf(each, p)); v != nil && q.Refused == "" {
			q.Low, q.High = v.Low, v.High
		}
		l.Latency = append(l.Latency, q)
	}
	var lines []stats.Pair
	for _, t := range trials {
		if t.Bench.Limit != nil {
			lines = append(lines, stats.Pair{A: medianOf(t), B: t.Bench.Limit.Line / 2})
		}
	}
	l.LatencyLimit = benchRatio(lines, b.run.Seed)
	if base, ok := b.baseline(l.Config); ok && l.LatencyLoad != matrix.LoadMax {
		l.LatencyBase = benchRatio(paired(trials, withResult(b.trials(base, l.LatencyLoad)), medianOf), b.run.Seed)
	}
}

// quantilesOf is a percentile of each round, or nothing if any round does not support
// it.
func quantilesOf(each []*stats.Dist, p float64) []float64 {
	var values []float64
	for _, d := range each {
		v, err := d.Quantile(p)
		if err != nil {
			return nil
		}
		values = append(values, float64(v))
	}
	return values
}

// medianOf is the median one-way time of a trial, ns; 0: none.
func medianOf(t record.Trial) float64 {
	if t.OneWay == nil {
		return 0
	}
	dist, err := stats.NewDist(t.OneWay.Latency, 0, 0)
	if err != nil {
		return 0
	}
	v, err := dist.Quantile(50)
	if err != nil {
		return 0
	}
	return float64(v)
}

func valuesOf(trials []record.Trial, value func(record.Trial) float64) []float64 {
	out := make([]float64, len(trials))
	for i, t := range trials {
		out[i] = value(t)
	}
	return out
}

// benchValue is nil for no values.
func benchValue(values []float64) *BenchValue {
	if len(values) == 0 {
		return nil
	}
	v := &BenchValue{Values: values}
	v.Mean, v.Low, v.High = meanOf(values)
	return v
}

// benchRatio is nil if no pair has two values.
func benchRatio(pairs []stats.Pair, seed uint64) *BenchRatio {
	pairs = slices.DeleteFunc(pairs, func(p stats.Pair) bool { return !(p.A > 0 && p.B > 0) })
	if len(pairs) == 0 {
		return nil
	}
	r := &BenchRatio{Ratio: pairs[0].A / pairs[0].B, Pairs: len(pairs)}
	if e, err := stats.Ratio(pairs, seed); err == nil {
		r.Ratio, r.Low, r.High, r.Method, r.Indistinct = e.Ratio, &e.CI.Low, &e.CI.High, e.Method, e.Indistinguishable()
	}
	return r
}

// frameLength is the mean length of a frame with its FCS, bytes.
func frameLength(size string) float64 {
	var s matrix.FrameSize
	if err := s.UnmarshalText([]byte(strings.TrimSpace(size))); err != nil {
		return 0
	}
	return s.Bytes()
}
