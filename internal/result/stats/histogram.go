// SPDX-License-Identifier: Apache-2.0

package stats

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"sort"

	"github.com/drayage/dray/internal/result/record"
)

// Beyond is how many samples must exceed a quantile for it to be reported.
const Beyond = 10

// maxCount limits the samples of one trial: a packet each nanosecond for 11 days.
const maxCount = 1 << 50

// Dist is a distribution of times in nanoseconds, of one trial or several. It counts
// samples that never came back, and some never taken.
type Dist struct {
	bars     []record.Bucket // not empty, ascending by To
	beyond   []int64         // samples in this bar and later ones
	widest   int64           // the widest bar, ns
	answered int64
	lost     int64
	missing  int64
}

// fill completes a distribution whose bars are set.
func (d *Dist) fill() *Dist {
	d.beyond = make([]int64, len(d.bars)+1)
	for i := len(d.bars) - 1; i >= 0; i-- {
		d.beyond[i] = d.beyond[i+1] + d.bars[i].Count
		d.widest = max(d.widest, d.bars[i].To-d.bars[i].From)
	}
	return d
}

// Exceedance counts the samples above a threshold. A bucket that contains the threshold
// counts in Possible only.
type Exceedance struct {
	Sure     int64 // certainly above
	Possible int64 // possibly above, given the buckets, or missing
}

// NewDist is the distribution of one trial. Lost samples are beyond every value.
// Missing ones were due but never taken. Nothing is known of them, so they count
// against an upper bound, and not towards a lower one. It refuses a malformed
// histogram.
func NewDist(h record.Histogram, lost, missing uint64) (*Dist, error) {
	if lost > maxCount || missing > maxCount {
		return nil, fmt.Errorf("%d lost and %d missing samples: too many to count", lost, missing)
	}
	buckets, err := h.Buckets()
	if err != nil {
		return nil, err
	}
	d := &Dist{bars: buckets, answered: h.Total(), lost: int64(lost), missing: int64(missing)}
	if d.answered > maxCount {
		return nil, fmt.Errorf("%d samples: too many to count", d.answered)
	}
	return d.fill(), nil
}

// Count is the number of samples, including the lost but not the missing ones.
func (d *Dist) Count() int64 { return d.answered + d.lost }

// Lost is the number of samples that never came back.
func (d *Dist) Lost() int64 { return d.lost }

// Range is the lowest and the highest possible value of a sample, in nanoseconds; ok is
// false if no sample came back.
func (d *Dist) Range() (low, high int64, ok bool) {
	if len(d.bars) == 0 {
		return 0, 0, false
	}
	low = d.bars[0].From
	for _, b := range d.bars {
		low = min(low, b.From)
	}
	return low, d.bars[len(d.bars)-1].To, true
}

// LostError says that a quantile falls among the samples that never came back.
type LostError struct {
	Percentile float64
	Lost, N    int64
}

func (e *LostError) Error() string {
	return fmt.Sprintf("p%g has no value: %d of %d samples were lost", e.Percentile, e.Lost, e.N)
}

// Quantile is the value in nanoseconds that percentile % of the samples do not exceed,
// rounded up to its bucket. It returns a *TooFewError if fewer than Beyond samples
// exceed it, and a *LostError if it falls among the lost.
func (d *Dist) Quantile(percentile float64) (int64, error) {
	if !(percentile >= 0 && percentile < 100) {
		return 0, fmt.Errorf("percentile %g is not in [0, 100)", percentile)
	}
	n := d.Count()
	if need := SamplesFor(percentile); n < need {
		return 0, &TooFewError{What: fmt.Sprintf("p%g", percentile), Have: float64(n), Need: float64(need), Unit: "samples"}
	}
	rank := int64(math.Ceil(percentile / 100 * float64(n) * (1 - 1e-12)))
	if rank > d.answered {
		return 0, &LostError{Percentile: percentile, Lost: d.lost, N: n}
	}
	var seen int64
	for _, b := range d.bars {
		if seen += b.Count; seen >= rank {
			return b.To, nil
		}
	}
	return 0, &LostError{Percentile: percentile, Lost: d.lost, N: n} // no samples
}

// SamplesFor is how many samples a percentile needs.
func SamplesFor(percentile float64) int64 {
	return int64(math.Ceil(Beyond*100/(100-percentile) - 1e-3))
}

// Exceed counts the samples above a threshold in nanoseconds. Lost samples exceed every
// threshold, and missing ones may.
func (d *Dist) Exceed(threshold int64) Exceedance {
	first := sort.Search(len(d.bars), func(i int) bool { return d.bars[i].To > threshold })
	possible := d.beyond[first]
	sure := possible
	for _, b := range d.bars[first:] {
		if b.To > threshold+d.widest {
			break
		}
		if b.From <= threshold {
			sure -= b.Count
		}
	}
	return Exceedance{Sure: d.lost + sure, Possible: d.lost + d.missing + possible}
}

// Variation is the distribution of PDV, D(i)−Dmin (RFC 5481 §4.2), over one trial, the
// test interval: this distribution shifted down by its Dmin, least, in nanoseconds.
// Values are rounded up to the bucket of D(i).
func (d *Dist) Variation(least int64) *Dist {
	v := &Dist{answered: d.answered, lost: d.lost, missing: d.missing}
	for _, b := range d.bars {
		v.bars = append(v.bars, record.Bucket{From: max(0, b.From-least), To: max(0, b.To-least), Count: b.Count})
	}
	return v.fill()
}

// Pool joins distributions without rounding again, so distributions of different
// resolution, or shifted by Variation, keep their bounds.
func Pool(parts ...*Dist) *Dist {
	p := &Dist{}
	for _, d := range parts {
		p.bars = append(p.bars, d.bars...)
		p.answered += d.answered
		p.lost += d.lost
		p.missing += d.missing
	}
	slices.SortFunc(p.bars, func(a, b record.Bucket) int {
		return cmp.Or(cmp.Compare(a.To, b.To), cmp.Compare(a.From, b.From))
	})
	return p.fill()
}
