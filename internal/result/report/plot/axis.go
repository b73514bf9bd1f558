// SPDX-License-Identifier: Apache-2.0

package plot

import "math"

// logFrom is the high/low ratio of a range from which its axis is logarithmic.
const logFrom = 8

// scale maps values to coordinates, linearly or by logarithm.
type scale struct {
	low, high float64 // values
	from, to  float64 // coordinates
	log       bool
}

func (s scale) at(v float64) float64 {
	low, high := s.low, s.high
	if s.log {
		v, low, high = math.Log(math.Max(v, s.low)), math.Log(low), math.Log(high)
	}
	return s.from + (v-low)/(high-low)*(s.to-s.from)
}

// rangeScale covers low to high with some margin, logarithmically if they are far
// apart.
func rangeScale(low, high, from, to float64) scale {
	if low > 0 && high/low >= logFrom {
		return scale{low: low / 1.25, high: high * 1.25, from: from, to: to, log: true}
	}
	return zeroScale(high, from, to)
}

// zeroScale is linear from 0 to a round value above high.
func zeroScale(high, from, to float64) scale {
	if !(high > 0) {
		high = 1
	}
	step := niceStep(high / 4)
	return scale{low: 0, high: math.Ceil(high*1.02/step) * step, from: from, to: to}
}

// ticks are round values within the scale: about five, or 1, 2 and 5 of each decade if
// it covers few decades.
func (s scale) ticks() []float64 {
	if s.log {
		return logTicks(s.low, s.high)
	}
	var out []float64
	step := niceStep((s.high - s.low) / 4.5)
	for v := s.low; v <= s.high*(1+1e-9); v += step {
		out = append(out, v)
	}
	return out
}

func logTicks(low, high float64) []float64 {
	steps := []float64{1, 2, 5}
	switch decades := math.Log10(high / low); {
	case decades > 4:
		steps = []float64{1}
	case decades > 2:
		steps = []float64{1, 3}
	}
	var out []float64
	for d := math.Floor(math.Log10(low)); d <= math.Ceil(math.Log10(high)); d++ {
		for _, s := range steps {
			if v := s * math.Pow(10, d); v >= low && v <= high {
				out = append(out, v)
			}
		}
	}
	return out
}

// niceStep is the smallest 1, 2, 2.5 or 5 × a power of ten that is at least v.
func niceStep(v float64) float64 {
	p := math.Pow(10, math.Floor(math.Log10(v)))
	for _, m := range []float64{1, 2, 2.5, 5} {
		if m*p >= v*(1-1e-9) {
			return m * p
		}
	}
	return 10 * p
}

// percentileAt maps a percentile to its place on the log axis: 0, 90, 99 and 99.9 are
// one unit apart.
func percentileAt(p float64) float64 {
	return -math.Log10(1 - math.Min(p, 100-1e-9)/100)
}
