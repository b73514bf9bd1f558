// SPDX-License-Identifier: Apache-2.0

package stats

import (
	"math"

	"gonum.org/v1/gonum/mathext"
	"gonum.org/v1/gonum/stat/distuv"
)

// Cluster is one trial's count: Events among N samples.
type Cluster struct {
	Events, N float64
}

// Proportion is the share of events, with one-sided bounds at a level of
// confidence.
type Proportion struct {
	Level      float64
	Events, N  float64
	Value      float64 // Events / N
	Lower      float64
	Upper      float64
	Deff       float64 // design effect, at least 1
	EffectiveN float64 // the equivalent number of independent samples
}

// ClopperPearsonAt returns the exact one-sided bounds, at a confidence level, of a
// proportion from events among n independent samples (Clopper & Pearson, Biometrika 26,
// 1934). Both may be fractional, as effective sizes are. It returns a *TooFewError for
// n ≤ 0.
func ClopperPearsonAt(level, events, n float64) (lower, upper float64, err error) {
	if !(n > 0) || events < 0 || events > n {
		return 0, 1, &TooFewError{What: "a proportion", Have: n, Need: math.Max(1, events), Unit: "samples"}
	}
	alpha := 1 - level
	lower, upper = 0, 1
	if events > 0 {
		lower = betaQuantile(alpha, events, n-events+1)
	}
	if events < n {
		upper = betaQuantile(1-alpha, events+1, n-events)
	}
	return lower, upper, nil
}

// betaQuantile is the p-quantile of the beta distribution.
func betaQuantile(p, a, b float64) float64 {
	switch { // closed forms, which stay exact for any number of samples
	case a == 1:
		return -math.Expm1(math.Log1p(-p) / b)
	case b == 1:
		return math.Exp(math.Log(p) / a)
	}
	return mathext.InvRegIncBeta(a, b, p)
}

// Clustered is ClusteredAt of Confidence.
func Clustered(trials []Cluster) (Proportion, error) { return ClusteredAt(Confidence, trials) }

// ClusteredAt bounds a proportion whose samples come from several trials. Samples of
// one trial are correlated, so a million of them from three trials are not a million
// independent ones. Their number is divided by the design effect (Kish, Survey
// Sampling, 1965, §8.2), estimated from the variance between trials and at least 1. It
// is also divided by the penalty for estimating that from few trials (Korn & Graubard,
// Survey Methodology 24, 1998). Clopper–Pearson then uses the effective number. If
// there are no events, or only events, trials show no difference and none is assumed.
//
// In simulation at 95 %, the bounds hold in at least 95 % if trials do not differ
// (nearly always for three trials). They hold in 92–99 % if trials differ so much that
// bounds for independent samples hold in 65–68 %.
//
// It returns a *TooFewError for fewer than two trials, or no samples.
func ClusteredAt(level float64, trials []Cluster) (Proportion, error) {
	p := Proportion{Level: level}
	used := 0
	for _, c := range trials {
		if c.N > 0 {
			used++
			p.Events += c.Events
			p.N += c.N
		}
	}
	if used < 2 {
		return p, &TooFewError{What: "a proportion over trials", Have: float64(used), Need: 2, Unit: "trials"}
	}
	p.Value = p.Events / p.N
	p.Deff, p.EffectiveN = 1, p.N
	if p.Events > 0 && p.Events < p.N {
		p.Deff = designEffect(trials, used, p.Value, p.N)
		p.EffectiveN = math.Min(p.N, p.N/p.Deff*fewTrials(level, used))
	}
	var err error
	p.Lower, p.Upper, err = ClopperPearsonAt(level, p.Value*p.EffectiveN, p.EffectiveN)
	return p, err
}

// designEffect is the observed variance of the pooled proportion (ratio estimator),
// over the variance of as many independent samples.
func designEffect(trials []Cluster, used int, value, n float64) float64 {
	var ss float64
	for _, c := range trials {
		d := c.Events - value*c.N
		ss += d * d
	}
	k := float64(used)
	between := k / (k - 1) * ss / (n * n)
	return math.Max(1, between/(value*(1-value)/n))
}

// fewTrials is the squared ratio of the normal quantile to Student's with one degree of
// freedom less than the number of trials.
func fewTrials(level float64, trials int) float64 {
	r := distuv.UnitNormal.Quantile(level) / tQuantile(level, trials-1)
	return r * r
}
