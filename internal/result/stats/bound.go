// SPDX-License-Identifier: Apache-2.0

package stats

import (
	"math"
	"slices"
)

// UpperQuantile is the one-sided upper bound, at a confidence level, of the value that
// at most the share tail of the samples exceed, in nanoseconds. It is the lowest value
// v for which the upper bound of the share above v, and above every higher value, is at
// most tail. It is +Inf if no value is a bound: too few samples, or too many lost. Each
// part is one trial.
//
// It returns a *TooFewError for fewer than two trials with samples.
func UpperQuantile(level float64, trials []*Dist, tail float64) (float64, error) {
	bound := math.Inf(1)
	for _, v := range descending(trials, func(from, to int64) int64 { return to }) {
		p, err := ClusteredAt(level, PossiblyAbove(trials, v))
		if err != nil {
			return bound, err
		}
		if p.Upper > tail {
			return bound, nil
		}
		bound = float64(v)
	}
	return bound, nil
}

// LowerQuantile is the one-sided lower bound, at a confidence level, of the value that
// more than the share tail of the samples reach, in nanoseconds. It is +Inf if too many
// samples were lost for a value, and 0 if nothing is proven.
//
// It returns a *TooFewError for fewer than two trials with samples.
func LowerQuantile(level float64, trials []*Dist, tail float64) (float64, error) {
	p, err := ClusteredAt(level, surelyAbove(trials, math.MaxInt64))
	if err != nil {
		return 0, err
	}
	if p.Lower > tail {
		return math.Inf(1), nil
	}
	for _, v := range descending(trials, func(from, to int64) int64 { return from }) {
		if p, err = ClusteredAt(level, surelyAbove(trials, v-1)); err != nil {
			return 0, err
		}
		if p.Lower > tail {
			return float64(v), nil
		}
	}
	return 0, nil
}

// descending returns every distinct bucket edge of the trials, highest first.
func descending(trials []*Dist, edge func(from, to int64) int64) []int64 {
	var edges []int64
	for _, d := range trials {
		for _, b := range d.bars {
			edges = append(edges, edge(b.From, b.To))
		}
	}
	slices.Sort(edges)
	edges = slices.Compact(edges)
	slices.Reverse(edges)
	return edges
}

// PossiblyAbove counts, per trial, the samples that may exceed a threshold in
// nanoseconds, among all that were due.
func PossiblyAbove(trials []*Dist, threshold int64) []Cluster {
	clusters := make([]Cluster, len(trials))
	for i, d := range trials {
		clusters[i] = Cluster{Events: float64(d.Exceed(threshold).Possible), N: float64(d.Count() + d.missing)}
	}
	return clusters
}

// surelyAbove counts, per trial, the samples that certainly exceed a threshold in
// nanoseconds, among all that were taken.
func surelyAbove(trials []*Dist, threshold int64) []Cluster {
	clusters := make([]Cluster, len(trials))
	for i, d := range trials {
		clusters[i] = Cluster{Events: float64(d.Exceed(threshold).Sure), N: float64(d.Count())}
	}
	return clusters
}

// SamplesToProve estimates how many similar samples would lower the upper bound of the
// share p.Value to limit; ok is false if no number would.
func (p Proportion) SamplesToProve(limit float64) (n float64, ok bool) {
	if p.Value >= limit {
		return 0, false
	}
	worth := p.EffectiveN / p.N
	for n = 3 / limit; n < 1e15; n *= 1.25 {
		if _, upper, err := ClopperPearsonAt(p.Level, p.Value*n*worth, n*worth); err == nil && upper <= limit {
			return n, true
		}
	}
	return 0, false
}
