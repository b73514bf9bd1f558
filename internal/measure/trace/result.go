// SPDX-License-Identifier: Apache-2.0

package trace

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/drayage/dray/internal/node"
	"github.com/drayage/dray/internal/result/record"
	"github.com/drayage/dray/internal/result/stats"
)

// Trace is what the trials of a path showed.
type Trace struct {
	tracer   *Tracer
	stages   []stage
	passages []passage         // of observed trials
	observed []record.Trial    // the same, as their generator saw them
	plain    []record.Trial    // trials without taps
	busy     []map[string]Busy // of the functions in these
	rest     map[string]Busy   // of the functions without traffic
	rounds   int               // that are finished
	stopped  []string          // functions of the path whose command does not run
}

// Rounds is how many rounds are finished.
func (t *Trace) Rounds() int { return t.rounds }

// cut removes the trials of an unfinished round.
func (t *Trace) cut() {
	t.passages, t.observed = t.passages[:t.rounds], t.observed[:t.rounds]
	t.plain, t.busy = t.plain[:t.rounds], t.busy[:t.rounds]
}

// Percentiles are those of every delay.
var Percentiles = []float64{50, 99, 99.9}

// Decisive is the percentile at which the result says what decides the delay.
const Decisive = 99

// Result is a traced path.
type Result struct {
	Path    string  `json:"path"`
	From    string  `json:"from"`
	To      string  `json:"to"`
	Payload int     `json:"payload_bytes"`
	Load    float64 `json:"load_bps"` // payload offered, bit/s
	Sent    float64 `json:"sent_bps"` // payload sent in observed trials, bit/s
	// Marks are doubts about the observed trials: the Mark constants of record.
	Marks    []string `json:"marks"`
	Rounds   int      `json:"rounds"`
	Asked    int      `json:"-"` // rounds, over Rounds if it was interrupted
	Trial    float64  `json:"trial_s"`
	Sampling int      `json:"sampling"` // one of so many packets was followed
	Packets  int      `json:"packets"`  // that were seen at every port
	Slowest  int      `json:"slowest"`  // of these, counted as slow: those at or beyond Decisive, but at least ten; 0: too few packets
	Hops     []Hop    `json:"hops"`
	// Whole is from the first port to the last, by the same packets.
	Whole Hop `json:"whole"`
	// Hidden are ports at which nothing can be observed, and why.
	Hidden []string `json:"hidden,omitempty"`
	// Stopped are functions of the path whose command does not run, with their phase: the
	// kernel alone can pass packets on there.
	Stopped []string `json:"stopped,omitempty"`
	// Decides says in one sentence what adds most to the delay of slow packets, and Slow why
	// that may be; empty: nothing is known.
	Decides string `json:"decides"`
	Slow    string `json:"slow,omitempty"`
	// Cost is the ratio of the median delay with taps to that without, by the generator's
	// own stamps.
	Cost *Cost `json:"cost,omitempty"`
}

// Hop is a link or a function of the path; or several of them, if nothing can be observed in
// between.
type Hop struct {
	Name      string   `json:"name"`
	Links     []string `json:"links"`
	Functions []string `json:"functions"`
	From      string   `json:"from"` // the ports between which it was observed
	To        string   `json:"to"`
	// Waits says that the hop is a link, and lasts until a program takes the packet out of
	// its queue.
	Waits bool       `json:"waits,omitempty"`
	Delay []Quantile `json:"delay"`
	// SlowShare is the mean of its delay among the slowest packets, ns; 0 if Slowest is.
	SlowShare float64 `json:"slow_ns"`
	Loss      *Loss   `json:"loss,omitempty"` // none: it is not known
	// Rate is the payload that came out, bit/s.
	Rate *Bounded `json:"rate_bps,omitempty"`
	// CPU is of a function, while nothing observed it.
	CPU *Use `json:"cpu,omitempty"`
}

// Bounded is a figure with its 95 % interval.
type Bounded struct {
	Value float64 `json:"value"`
	Low   float64 `json:"low"`
	High  float64 `json:"high"`
}

// Quantile is a percentile of delays in ns, with one-sided 95 % bounds.
type Quantile struct {
	Percentile float64 `json:"percentile"`
	Bounded
}

// Loss is a share of packets, with one-sided 95 % bounds.
type Loss struct {
	Lost uint64 `json:"lost"`
	Of   uint64 `json:"of"`
	Bounded
}

// Use is the use of CPUs by a function.
type Use struct {
	Cores Bounded `json:"cores"`
	Busy          // of the busiest trial
	Rest  float64 `json:"rest"` // cores without traffic
}

// Cost is a ratio with its 95 % interval.
type Cost struct {
	Bounded
	Detectable float64 `json:"detectable"` // a smaller ratio is not told from 1
}

// Result sums up the trials.
func (t *Trace) Result() (*Result, error) {
	tr := t.tracer
	r := &Result{
		Path: tr.Path.Name, From: tr.points[0].end.String(), To: tr.points[len(tr.points)-1].end.String(),
		Payload: tr.payload(), Load: float64(tr.params.Bitrate), Rounds: t.rounds, Asked: tr.Options.Rounds, Stopped: t.stopped, Trial: tr.Options.Duration.Seconds(), Sampling: int(tr.keep),
	}
	r.Sent, r.Marks = sentOf(t.observed)
	r.Hidden = tr.hidden(t.stages)
	var all [][]int64
	for _, p := range t.passages {
		all = append(all, p.whole...)
	}
	r.Packets, r.Slowest = len(all), slowest(len(all))
	if r.Packets == 0 {
		return nil, r.nothing()
	}
	for i, s := range t.stages {
		r.Hops = append(r.Hops, t.hop(s, i))
	}
	r.Whole = t.whole(r)
	r.share(all)
	r.decide()
	r.Cost = t.cost()
	return r, nil
}

// nothing is the error of a path on which no packet came through.
func (r *Result) nothing() error {
	if len(r.Stopped) > 0 {
		return fmt.Errorf("path %s: no packet was seen at every port of the path, and not all of its functions run: %s; `dray logs` may say why", r.Path, strings.Join(r.Stopped, ", "))
	}
	return fmt.Errorf("path %s: no packet was seen at every port of the path: does a function on it change what is in the packets?", r.Path)
}

// stopped are those of the functions whose command ended, and how.
func stopped(functions []string, statuses []node.FunctionStatus) []string {
	var list []string
	for _, st := range statuses {
		ended := []node.Phase{node.PhaseRestarting, node.PhaseExited, node.PhaseFailed, node.PhaseGone}
		if slices.Contains(functions, st.Name) && slices.Contains(ended, st.Phase) {
			list = append(list, fmt.Sprintf("%s (%s)", st.Name, st.Phase))
		}
	}
	return list
}

// sentOf is the mean rate of payload that trials sent, bit/s, and all their marks.
func sentOf(trials []record.Trial) (bps float64, marks []string) {
	marks = []string{}
	for _, t := range trials {
		bps += float64(t.Delivery.SentBits) / float64(len(trials))
		for _, m := range t.Marks {
			if !slices.Contains(marks, m) {
				marks = append(marks, m)
			}
		}
	}
	return bps, marks
}

// share divides the delay of the slowest packets among the hops.
func (r *Result) share(all [][]int64) {
	if r.Slowest == 0 {
		return
	}
	means, sum := shares(all, r.Slowest)
	for i := range r.Hops {
		r.Hops[i].SlowShare = means[i]
	}
	r.Whole.SlowShare = sum
}

// hidden says which ports are not observed, and what follows of it.
func (t *Tracer) hidden(stages []stage) []string {
	var texts []string
	for _, p := range t.points {
		if p.why != "" {
			texts = append(texts, p.why)
		}
	}
	if last := stages[len(stages)-1].to; last < len(t.points)-1 {
		texts = append(texts, "so nothing is known of the path beyond "+t.points[last].end.String())
	}
	return texts
}

func (t *Trace) hop(s stage, i int) Hop {
	h := Hop{From: t.tracer.points[s.from].end.String(), To: t.tracer.points[s.to].end.String(), Links: []string{}, Functions: []string{}}
	var names []string
	for _, p := range s.parts {
		if p.function {
			h.Functions, names = append(h.Functions, p.name), append(names, p.name)
		} else {
			h.Links, names = append(h.Links, p.name), append(names, "link "+p.name)
		}
	}
	h.Name = strings.Join(names, " + ")
	to := t.tracer.points[s.to]
	h.Waits = len(s.parts) == 1 && !to.sent && to.end.Brokered()
	var delays [][]int64
	var losses []stats.Cluster
	var rates []float64
	for _, p := range t.passages {
		delays = append(delays, p.delays[i])
		losses = append(losses, stats.Cluster{Events: float64(p.entered[i] - min(p.entered[i], p.passed[i])), N: float64(p.entered[i])})
		rates = append(rates, p.rates[i]*8*float64(t.tracer.payload()))
	}
	h.Delay, h.Loss, h.Rate = quantiles(delays), lossOf(losses), meanOf(rates)
	if len(s.parts) == 1 && s.parts[0].function {
		h.CPU = t.use(s.parts[0].name)
	}
	return h
}

// whole is the path as one hop.
func (t *Trace) whole(r *Result) Hop {
	h := Hop{Name: "whole path", From: r.From, To: r.Hops[len(r.Hops)-1].To, Links: []string{}, Functions: []string{}}
	var delays [][]int64
	var losses []stats.Cluster
	var rates []float64
	for _, p := range t.passages {
		var sums []int64
		for _, row := range p.whole {
			sum := int64(0)
			for _, d := range row {
				sum += d
			}
			sums = append(sums, sum)
		}
		delays = append(delays, sums)
	}
	for _, sent := range t.observed {
		lost := sent.Delivery.Lost - min(sent.Delivery.Lost, sent.Delivery.ReceiverDrops)
		losses = append(losses, stats.Cluster{Events: float64(lost), N: float64(sent.Delivery.Sent)})
		all := stream{packets: sent.Delivery.Sent, span: sent.Duration}
		rates = append(rates, all.rate(sent.Delivery.Sent, sent.Delivery.Sent-lost)*8*float64(t.tracer.payload()))
	}
	h.Delay, h.Loss, h.Rate = quantiles(delays), lossOf(losses), meanOf(rates)
	return h
}

// quantiles are those of the trials' delays that enough samples support.
func quantiles(trials [][]int64) []Quantile {
	var dists []*stats.Dist
	for _, delays := range trials {
		if d, err := stats.NewDist(histogram(delays), 0, 0); err == nil && d.Count() > 0 {
			dists = append(dists, d)
		}
	}
	out := []Quantile{}
	for _, p := range Percentiles {
		value, err := stats.Pool(dists...).Quantile(p)
		low, err1 := stats.LowerQuantile(stats.Confidence, dists, 1-p/100)
		high, err2 := stats.UpperQuantile(stats.Confidence, dists, 1-p/100)
		if errors.Join(err, err1, err2) == nil {
			out = append(out, Quantile{p, Bounded{float64(value), low, high}})
		}
	}
	return out
}

// histogram counts delays in ns.
func histogram(delays []int64) record.Histogram {
	const bits = 10 // buckets of at most a thousandth
	counts := map[int64]int64{}
	for _, d := range delays {
		counts[record.LogLinearLowest(d, bits)]++
	}
	lowest := slices.Sorted(maps.Keys(counts))
	var n []int64
	for _, v := range lowest {
		n = append(n, counts[v])
	}
	h, err := record.FromLogLinear(bits, lowest, n)
	if err != nil {
		return record.Histogram{Bits: bits}
	}
	return h
}

// lossOf is nil if a trial could not count.
func lossOf(trials []stats.Cluster) *Loss {
	if slices.ContainsFunc(trials, func(c stats.Cluster) bool { return c.N == 0 }) {
		return nil
	}
	p, err := stats.Clustered(trials)
	if err != nil {
		return nil
	}
	return &Loss{uint64(p.Events), uint64(p.N), Bounded{p.Value, p.Lower, p.Upper}}
}

func meanOf(values []float64) *Bounded {
	if slices.Contains(values, 0) {
		return nil
	}
	e, err := stats.Mean(values)
	if err != nil {
		return nil
	}
	return &Bounded{e.Mean, e.CI.Low, e.CI.High}
}

// use is what a function used in the trials without taps.
func (t *Trace) use(function string) *Use {
	u := &Use{Rest: t.rest[function].All}
	var cores []float64
	for _, b := range t.busy {
		cores = append(cores, b[function].All)
		if b[function].Ran >= u.Ran {
			u.Busy = b[function]
		}
	}
	e, err := stats.Mean(cores)
	if err != nil || u.Thread == "" {
		return nil
	}
	u.Cores = Bounded{e.Mean, max(0, e.CI.Low), e.CI.High}
	return u
}

// cost compares the median delays of trials with and without taps.
func (t *Trace) cost() *Cost {
	var with, without []float64
	for i := range min(len(t.observed), len(t.plain)) {
		a, err1 := median(t.observed[i])
		b, err2 := median(t.plain[i])
		if errors.Join(err1, err2) != nil || a <= 0 || b <= 0 {
			return nil
		}
		with, without = append(with, a), append(without, b)
	}
	var pairs []stats.Pair
	for i := range with {
		pairs = append(pairs, stats.Pair{A: with[i], B: without[i]})
	}
	r, err := stats.Ratio(pairs, 1)
	if err != nil {
		return nil
	}
	return &Cost{Bounded{r.Ratio, r.CI.Low, r.CI.High}, r.CI.High / r.Ratio}
}

func median(t record.Trial) (float64, error) {
	if t.OneWay == nil {
		return 0, errors.New("no delays")
	}
	d, err := stats.NewDist(t.OneWay.Latency, 0, 0)
	if err != nil {
		return 0, err
	}
	v, err := d.Quantile(50)
	return float64(v), err
}
