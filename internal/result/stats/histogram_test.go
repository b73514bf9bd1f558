// SPDX-License-Identifier: Apache-2.0

package stats

import (
	"errors"
	"math"
	"testing"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/drayage/dray/internal/result/record"
)

// histogramOf records values as an instrument does.
func histogramOf(t *testing.T, digits int, values ...int64) record.Histogram {
	t.Helper()
	h := record.Histogram{Lowest: 1, Highest: 10_000_000_000, Digits: digits}
	hdr := hdrhistogram.New(h.Lowest, h.Highest, h.Digits)
	for _, v := range values {
		if err := hdr.RecordValue(v); err != nil {
			t.Fatal(err)
		}
	}
	for _, b := range hdr.Distribution() {
		if b.Count > 0 {
			h.Counts = append(h.Counts, record.BucketCount{Value: b.To, Count: b.Count})
		}
	}
	return h
}

func dist(t *testing.T, h record.Histogram, lost uint64) *Dist {
	t.Helper()
	d, err := NewDist(h, lost, 0)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func ramp(n int) []int64 {
	values := make([]int64, n)
	for i := range values {
		values[i] = int64(i+1) * 1000
	}
	return values
}

func TestQuantile(t *testing.T) {
	d := dist(t, histogramOf(t, 3, ramp(1000)...), 0)
	for p, want := range map[float64]float64{0: 1e3, 50: 500e3, 90: 900e3, 99: 990e3} {
		got, err := d.Quantile(p)
		if err != nil {
			t.Fatal(err)
		}
		if float64(got) < want || float64(got) > want*1.002 {
			t.Errorf("p%g = %d, want %g rounded up by at most 0.2 %%", p, got, want)
		}
	}
}

func TestQuantileRefusedBeyondItsSamples(t *testing.T) {
	d := dist(t, histogramOf(t, 3, ramp(999)...), 0)
	var few *TooFewError
	if _, err := d.Quantile(99); !errors.As(err, &few) || few.Need != 1000 {
		t.Errorf("p99 of 999 samples: %v, want a *TooFewError that asks for 1000", err)
	}
	if _, err := d.Quantile(100); err == nil {
		t.Error("p100 was given")
	}
	if _, err := d.Quantile(math.NaN()); err == nil {
		t.Error("pNaN was given")
	}
	for p, want := range map[float64]int64{50: 20, 99: 1000, 99.9: 10_000, 99.99: 100_000, 99.999: 1_000_000} {
		if got := SamplesFor(p); got != want {
			t.Errorf("SamplesFor(%g) = %d, want %d", p, got, want)
		}
	}
}

func TestQuantileAmongTheLost(t *testing.T) {
	d := dist(t, histogramOf(t, 3, ramp(980)...), 20)
	var lost *LostError
	if _, err := d.Quantile(99); !errors.As(err, &lost) {
		t.Errorf("p99 with 2 %% lost: %v, want a *LostError", err)
	}
	if v, err := d.Quantile(90); err != nil || v < 900_000 {
		t.Errorf("p90 = %d, %v; losses count as beyond it", v, err)
	}
	nothing := dist(t, record.Histogram{Lowest: 1, Highest: 1000, Digits: 3}, 50)
	if _, err := nothing.Quantile(0); !errors.As(err, &lost) {
		t.Errorf("p0 of nothing but losses: %v, want a *LostError", err)
	}
	if _, _, ok := nothing.Range(); ok {
		t.Error("nothing but losses has a range")
	}
}

func TestExceedIsConservative(t *testing.T) {
	// With one digit, 980 and 990 share a bucket: 960…991.
	d := dist(t, histogramOf(t, 1, 500, 990, 2000), 1)
	e := d.Exceed(980)
	if e.Sure != 2 || e.Possible != 3 {
		t.Errorf("Exceed(980) = %+v, want 2 sure (2000 and the lost one) and 3 possible", e)
	}
	if e := d.Exceed(5000); e.Sure != 1 || e.Possible != 1 {
		t.Errorf("Exceed(5000) = %+v, want the lost one only", e)
	}
}

func TestPoolKeepsCountsAndBounds(t *testing.T) {
	coarse, fine := dist(t, histogramOf(t, 1, 990), 0), dist(t, histogramOf(t, 3, 970, 1010), 2)
	p := Pool(coarse, fine)
	if p.Count() != 5 || p.Lost() != 2 {
		t.Errorf("pool of 1 and 4 samples: %d, %d lost", p.Count(), p.Lost())
	}
	if e := p.Exceed(980); e.Sure != 3 || e.Possible != 4 {
		t.Errorf("Exceed(980) = %+v, want 3 sure and 4 possible", e)
	}
	if low, high, ok := p.Range(); !ok || low > 970 || high < 1010 {
		t.Errorf("Range = %d…%d, %v", low, high, ok)
	}
}

func TestMissingCountAgainstUpperBoundsOnly(t *testing.T) {
	stalled, err := NewDist(histogramOf(t, 3, ramp(500)...), 1, 500)
	if err != nil {
		t.Fatal(err)
	}
	if e := stalled.Exceed(1_000_000); e.Sure != 1 || e.Possible != 501 || stalled.Count() != 501 {
		t.Errorf("a stalled trial: %+v of %d, want 1 sure and 501 possible of 501", e, stalled.Count())
	}
	parts := []*Dist{stalled, stalled, stalled}
	if v, err := UpperQuantile(Confidence, parts, 0.1); err != nil || !math.IsInf(v, 1) {
		t.Errorf("half is missing: p90 is bounded by %g, %v; want no bound", v, err)
	}
	if v, err := LowerQuantile(Confidence, parts, 0.1); err != nil || v > 455_000 {
		t.Errorf("half is missing: p90 is at least %g, %v; want the samples' value", v, err)
	}
}

// A search counts the same as one-by-one counting, also in a pool of resolutions.
func TestExceedAgreesWithCounting(t *testing.T) {
	p := Pool(dist(t, histogramOf(t, 1, ramp(300)...), 2), dist(t, histogramOf(t, 3, ramp(400)...), 1))
	for _, threshold := range []int64{-1, 0, 999, 50_000, 123_456, 299_999, 400_000, 1 << 40, math.MaxInt64} {
		want := Exceedance{Sure: 3, Possible: 3}
		for _, b := range p.bars {
			if b.To > threshold {
				want.Possible += b.Count
			}
			if b.From > threshold {
				want.Sure += b.Count
			}
		}
		if got := p.Exceed(threshold); got != want {
			t.Errorf("above %d: %+v, want %+v", threshold, got, want)
		}
	}
}

func TestVariation(t *testing.T) {
	d := dist(t, histogramOf(t, 3, 40_000, 41_000, 90_000), 1).Variation(40_000)
	if e := d.Exceed(900); e.Sure != 3 {
		t.Errorf("more than 900 ns above the least: %+v, want 3 (one of them lost)", e)
	}
	if e := d.Exceed(1_100); e.Possible != 2 {
		t.Errorf("more than 1100 ns above the least: %+v, want 2", e)
	}
	low, high, _ := d.Range()
	if low != 0 || high < 50_000 || high > 50_200 {
		t.Errorf("PDV is in %d…%d, want 0…50000", low, high)
	}
}

func TestMalformedHistogramsAreRefused(t *testing.T) {
	good := record.Histogram{Lowest: 1, Highest: 1_000_000, Digits: 3, Counts: []record.BucketCount{{Value: 10, Count: 1}}}
	for name, spoil := range map[string]func(*record.Histogram){
		"range":       func(h *record.Histogram) { h.Highest = math.MaxInt64 },
		"inverted":    func(h *record.Histogram) { h.Lowest = 2_000_000 },
		"zero lowest": func(h *record.Histogram) { h.Lowest = 0 },
		"digits":      func(h *record.Histogram) { h.Digits = 9 },
		"negative":    func(h *record.Histogram) { h.Counts[0].Value = -5 },
		"empty":       func(h *record.Histogram) { h.Counts[0].Count = 0 },
		"order":       func(h *record.Histogram) { h.Counts = append(h.Counts, record.BucketCount{Value: 5, Count: 1}) },
		"outside":     func(h *record.Histogram) { h.Counts[0].Value = 1 << 50 },
		"overflow": func(h *record.Histogram) {
			h.Counts = []record.BucketCount{{Value: 1, Count: math.MaxInt64}, {Value: 2, Count: math.MaxInt64}}
		},
	} {
		h := good
		h.Counts = append([]record.BucketCount(nil), good.Counts...)
		spoil(&h)
		if _, err := NewDist(h, 0, 0); err == nil {
			t.Errorf("%s: a malformed histogram was accepted", name)
		}
	}
	if _, err := NewDist(good, math.MaxUint64, 0); err == nil {
		t.Error("an impossible number of losses was accepted")
	}
	if _, err := NewDist(good, 0, 0); err != nil {
		t.Errorf("a good histogram was refused: %v", err)
	}
}
