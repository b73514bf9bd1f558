// SPDX-License-Identifier: Apache-2.0

package record

import (
	"fmt"
	"math"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// The geometry of the histograms that Drayage records: 1 ns to 60 s with three
// significant digits.
const (
	HistogramLowest  = int64(1)
	HistogramHighest = int64(60e9)
	HistogramDigits  = 3
)

// The bounds of a histogram that is read: they keep a hostile file from asking
// for gigabytes.
const (
	maxHistogramLowest  = int64(1) << 20
	maxHistogramHighest = int64(1) << 50
	maxHistogramDigits  = 4
)

// NewHDR is an empty histogram of the geometry that Drayage records.
func NewHDR() *hdrhistogram.Histogram {
	return hdrhistogram.New(HistogramLowest, HistogramHighest, HistogramDigits)
}

// FromHDR copies the histogram's counts exactly.
func FromHDR(h *hdrhistogram.Histogram) Histogram {
	out := Histogram{
		Lowest:  h.LowestTrackableValue(),
		Highest: h.HighestTrackableValue(),
		Digits:  int(h.SignificantFigures()),
		Counts:  []BucketCount{},
	}
	for _, bar := range h.Distribution() {
		if bar.Count > 0 {
			out.Counts = append(out.Counts, BucketCount{Value: bar.To, Count: bar.Count})
		}
	}
	return out
}

// HDR rebuilds the histogram with the same counts in the same buckets.
func (h Histogram) HDR() (*hdrhistogram.Histogram, error) {
	if err := h.Check(); err != nil {
		return nil, err
	}
	hdr := hdrhistogram.New(h.Lowest, h.Highest, h.Digits)
	for _, c := range h.Counts {
		if err := hdr.RecordValues(c.Value, c.Count); err != nil {
			return nil, fmt.Errorf("histogram: %w", err)
		}
	}
	return hdr, nil
}

// Total is the number of samples.
func (h Histogram) Total() int64 {
	var n int64
	for _, c := range h.Counts {
		n += c.Count
	}
	return n
}

// Check reports a geometry or counts that no histogram made here can have.
func (h Histogram) Check() error {
	if h.Lowest < 1 || h.Lowest > maxHistogramLowest || h.Highest > maxHistogramHighest || h.Highest < 2*h.Lowest {
		return fmt.Errorf("histogram from %d to %d ns: impossible range", h.Lowest, h.Highest)
	}
	if h.Digits < 1 || h.Digits > maxHistogramDigits {
		return fmt.Errorf("histogram of %d digits: impossible", h.Digits)
	}
	last, total := int64(-1), int64(0)
	for _, c := range h.Counts {
		// A bucket's highest value may lie a bucket's width above Highest.
		if c.Value <= last || c.Value > 2*h.Highest {
			return fmt.Errorf("histogram bucket %d ns: not ascending, or out of range", c.Value)
		}
		if c.Count < 1 || c.Count > math.MaxInt64-total {
			return fmt.Errorf("histogram bucket %d ns: impossible count %d", c.Value, c.Count)
		}
		last, total = c.Value, total+c.Count
	}
	return nil
}

// MergeHistograms adds histograms of one geometry; their counts are summed,
// never averaged. None gives an empty histogram of Drayage's own geometry.
func MergeHistograms(hs ...Histogram) (Histogram, error) {
	if len(hs) == 0 {
		return FromHDR(NewHDR()), nil
	}
	sum, err := hs[0].HDR()
	if err != nil {
		return Histogram{}, err
	}
	for _, h := range hs[1:] {
		if h.Lowest != hs[0].Lowest || h.Highest != hs[0].Highest || h.Digits != hs[0].Digits {
			return Histogram{}, fmt.Errorf("histograms of different geometry cannot be merged")
		}
		if err := h.Check(); err != nil {
			return Histogram{}, err
		}
		for _, c := range h.Counts {
			if c.Count > math.MaxInt64-sum.TotalCount() {
				return Histogram{}, fmt.Errorf("merged histogram: count overflows")
			}
			if err := sum.RecordValues(c.Value, c.Count); err != nil {
				return Histogram{}, fmt.Errorf("merge histogram: %w", err)
			}
		}
	}
	return FromHDR(sum), nil
}
