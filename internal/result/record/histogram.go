// SPDX-License-Identifier: Apache-2.0

package record

import (
	"errors"
	"fmt"
	"math"
	mathbits "math/bits"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// The geometry of Drayage's histograms: 1 ns to 60 s with three significant digits.
const (
	HistogramLowest  = int64(1)
	HistogramHighest = int64(60e9)
	HistogramDigits  = 3
)

// Limits for reading a histogram, so that a hostile file cannot claim gigabytes.
const (
	maxHistogramLowest  = int64(1) << 20
	maxHistogramHighest = int64(1) << 50
	maxHistogramDigits  = 4
	// Log-linear histograms: 2^12 buckets an octave are finer than any clock here
	// needs.
	maxHistogramBits = 12
)

// Bucket counts the samples between From and To, both included, in ns.
type Bucket struct {
	From, To, Count int64
}

// Buckets are the non-empty buckets, in ascending order.
func (h Histogram) Buckets() ([]Bucket, error) {
	if h.Bits > 0 {
		if err := h.Check(); err != nil {
			return nil, err
		}
		out := make([]Bucket, len(h.Counts))
		for i, c := range h.Counts {
			out[i] = Bucket{c.Value - logLinearWidth(c.Value, h.Bits) + 1, c.Value, c.Count}
		}
		return out, nil
	}
	hdr, err := h.HDR()
	if err != nil {
		return nil, err
	}
	var out []Bucket
	for _, bar := range hdr.Distribution() {
		if bar.Count > 0 {
			out = append(out, Bucket{bar.From, bar.To, bar.Count})
		}
	}
	return out, nil
}

// logLinearWidth is the width of v's bucket, if every power of two from 2^bits on has
// 2^bits buckets.
func logLinearWidth(v int64, bits int) int64 {
	return int64(1) << max(0, mathbits.Len64(uint64(v))-1-bits)
}

// LogLinearLowest is the start of v's bucket, if every power of two from 2^bits on has
// 2^bits buckets.
func LogLinearLowest(v int64, bits int) int64 { return v - v%logLinearWidth(v, bits) }

// FromLogLinear makes a log-linear histogram from buckets that begin at the given
// values, ascending. It refuses a value that is not the start of a bucket.
func FromLogLinear(bits int, lowest, counts []int64) (Histogram, error) {
	h := Histogram{Bits: bits, Counts: []BucketCount{}}
	if bits < 1 || bits > maxHistogramBits || len(lowest) != len(counts) {
		return h, fmt.Errorf("histogram of %d bits, %d values and %d counts: impossible", bits, len(lowest), len(counts))
	}
	for i, v := range lowest {
		if v < 0 || v > maxHistogramHighest || v != LogLinearLowest(v, bits) {
			return h, fmt.Errorf("histogram bucket from %d ns: no bucket begins there", v)
		}
		h.Counts = append(h.Counts, BucketCount{Value: v + logLinearWidth(v, bits) - 1, Count: counts[i]})
	}
	return h, h.Check()
}

// NewHDR is an empty histogram in Drayage's geometry.
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

// HDR rebuilds an HDR histogram with the same counts in the same buckets.
func (h Histogram) HDR() (*hdrhistogram.Histogram, error) {
	if err := h.Check(); err != nil {
		return nil, err
	}
	if h.Bits > 0 {
		return nil, errors.New("a log-linear histogram has no HDR buckets")
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

// Check reports a geometry or counts that no histogram of ours can have.
func (h Histogram) Check() error {
	highest, err := h.checkGeometry()
	if err != nil {
		return err
	}
	last, total := int64(-1), int64(0)
	for _, c := range h.Counts {
		if c.Value <= last || c.Value > highest {
			return fmt.Errorf("histogram bucket %d ns: out of order or out of range", c.Value)
		}
		if h.Bits > 0 && (c.Value+1)%logLinearWidth(c.Value, h.Bits) != 0 {
			return fmt.Errorf("histogram bucket %d ns: no bucket ends there", c.Value)
		}
		if c.Count < 1 || c.Count > math.MaxInt64-total {
			return fmt.Errorf("histogram bucket %d ns: impossible count %d", c.Value, c.Count)
		}
		last, total = c.Value, total+c.Count
	}
	return nil
}

// checkGeometry returns the highest value of any bucket.
func (h Histogram) checkGeometry() (int64, error) {
	if h.Bits != 0 {
		if h.Bits < 1 || h.Bits > maxHistogramBits || h.Lowest != 0 || h.Highest != 0 || h.Digits != 0 {
			return 0, fmt.Errorf("histogram of %d bits, and %d to %d ns of %d digits: impossible", h.Bits, h.Lowest, h.Highest, h.Digits)
		}
		return 2 * maxHistogramHighest, nil
	}
	if h.Lowest < 1 || h.Lowest > maxHistogramLowest || h.Highest > maxHistogramHighest || h.Highest < 2*h.Lowest {
		return 0, fmt.Errorf("histogram from %d to %d ns: impossible range", h.Lowest, h.Highest)
	}
	if h.Digits < 1 || h.Digits > maxHistogramDigits {
		return 0, fmt.Errorf("histogram of %d digits: impossible", h.Digits)
	}
	// A bucket's highest value may exceed Highest by a bucket's width.
	return 2 * h.Highest, nil
}
