// SPDX-License-Identifier: Apache-2.0

package probe

import "math"

// bounds finds the delays of an interval's probes in both directions, and how far the other
// node's clock is ahead. It reports whether the stamps can be of two clocks that run at almost the
// same rate.
//
// The skew of an own probe is its delay plus what the other clock is ahead; the skew of the other's
// is its delay minus that. No delay is negative. So the sum of any two opposite skews, and of
// what the clocks may have drifted apart between them, is at least each of the two delays.
func bounds(out, in *way, from, until uint64, oneClock bool, i *Interval) (clock *[2]int64, sane bool) {
	earlier := from - min(from, intervalNS)
	forth, back := out.between(earlier, until+intervalNS), in.between(earlier, until+intervalNS)
	if len(forth) == 0 || len(back) == 0 {
		return nil, true
	}
	c := [2]int64{math.MinInt64, math.MaxInt64}
	own, other := delays(forth, back, from, until), delays(back, forth, from, until)
	if own == nil || other == nil {
		return nil, false
	}
	if oneClock {
		own.exact()
		other.exact()
	}
	for n, d := range own.of {
		i.Out.Delays = append(i.Out.Delays, Delay{d.Low(), d.High(), own.skews[n] - own.least})
	}
	for n, d := range other.of {
		i.In.Delays = append(i.In.Delays, Delay{d.Low(), d.High(), other.skews[n] - other.least})
	}
	i.Rounds = rounds(forth, back, from, until)
	if oneClock {
		return &[2]int64{}, true
	}
	middle := passage{at: from/2 + until/2}
	for _, p := range forth {
		c[1] = min(c[1], p.skew()+drift(apart(p, &middle)))
	}
	for _, p := range back {
		c[0] = max(c[0], -p.skew()-drift(apart(p, &middle)))
	}
	return &c, true
}

// rounds are the least that the delays of an interval's own probes and of the next of the other
// node may be together.
func rounds(forth, back []*passage, from, until uint64) []int64 {
	var all []int64
	for _, p := range forth {
		if p.at < from || p.at >= until {
			continue
		}
		next := back[0]
		for _, o := range back {
			if apart(p, o) < apart(p, next) {
				next = o
			}
		}
		all = append(all, max(0, p.skew()+next.skew()-drift(apart(p, next))))
	}
	return all
}

// bounded are the delays of one direction.
type bounded struct {
	of    []Delay
	skews []int64
	least int64 // of skews
}

// exact makes each delay the difference of its stamps, which are of one clock.
func (b *bounded) exact() {
	for n, skew := range b.skews {
		skew = max(0, skew) // less only if it was forged
		b.of[n] = Delay{skew, skew}
	}
}

// delays are the bounds of the delays of those passages that are in a span; nil if a delay would be
// negative.
func delays(all, opposite []*passage, from, until uint64) *bounded {
	b := &bounded{least: math.MaxInt64}
	for _, p := range all {
		if p.at < from || p.at >= until {
			continue
		}
		low, high := int64(0), int64(math.MaxInt64)
		for _, o := range all {
			low = max(low, p.skew()-o.skew()-drift(apart(p, o)))
		}
		for _, o := range opposite {
			high = min(high, p.skew()+o.skew()+drift(apart(p, o)))
		}
		if high < low {
			return nil
		}
		b.of, b.skews, b.least = append(b.of, Delay{low, high}), append(b.skews, p.skew()), min(b.least, p.skew())
	}
	return b
}

// apart is the time between two passages.
func apart(p, o *passage) uint64 { return max(p.at, o.at) - min(p.at, o.at) }
