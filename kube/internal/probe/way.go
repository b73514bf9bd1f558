// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"maps"
	"slices"
)

// passage is the way of one probe. Each stamp is on the clock of its node; its Seq is 0 if the
// probe has not been seen there.
type passage struct {
	at         uint64 // when this node saw it or heard of it, on its own clock
	left, came Stamp
	gone       bool // the other half should have got it, and has not
}

// whole reports whether both ends of the passage are known.
func (p *passage) whole() bool { return p.left.Seq > 0 && p.came.Seq > 0 }

// skew is the delay plus the difference of the clocks.
func (p *passage) skew() int64 { return int64(p.came.NS) - int64(p.left.NS) }

// balance is how many packets had left but not come, from an unknown number on.
func (p *passage) balance() int64 { return int64(p.left.Count) - int64(p.came.Count) }

// maxPassages bounds what a flood of forged probes can make a session remember.
const maxPassages = 1024

// way is one direction.
type way struct {
	passages map[uint32]*passage

	counted bool   // the following are known
	sent    uint64 // packets that had left at the latest probe that counts
	bytes   uint64 // bytes that had come at that probe
	missing int64  // balance that is certainly not on the way
	highest uint32 // number of the latest probe in a closed interval
	top     uint32 // number of the latest probe
}

// lateNS is the age at which an own probe that has not come counts as lost.
const lateNS = uint64(1e9)

// maxGap is a number of probes that no half sends while the other remembers it.
const maxGap = 1 << 20

func newWay() way { return way{passages: map[uint32]*passage{}} }

// at is the passage of a probe, which may be new.
func (w *way) at(seq uint32, now uint64) *passage {
	p := w.passages[seq]
	if p == nil {
		p = &passage{at: now}
		if len(w.passages) >= maxPassages {
			return p // forgotten at once
		}
		w.passages[seq] = p
		w.top = max(w.top, seq)
	}
	return p
}

// recent bounds how far back latest looks.
const recent = 4 * receivedStamps

// latest are the latest n stamps of a kind.
func (w *way) latest(n int, of func(*passage) Stamp) []Stamp {
	var all []Stamp
	for seq := w.top; seq > 0 && w.top-seq < recent && len(all) < n; seq-- {
		if p := w.passages[seq]; p != nil && of(p).Seq > 0 {
			all = append(all, of(p))
		}
	}
	return all
}

// between are the passages in a span of this node's time that are known at both ends, by number.
func (w *way) between(from, until uint64) []*passage {
	var all []*passage
	for _, seq := range slices.Sorted(maps.Keys(w.passages)) {
		if p := w.passages[seq]; p.whole() && p.at >= from && p.at < until {
			all = append(all, p)
		}
	}
	return all
}

// prune forgets what was before a time. The interval from there on still helps to bound the
// clocks of the next.
func (w *way) prune(before uint64) {
	maps.DeleteFunc(w.passages, func(_ uint32, p *passage) bool { return p.at < before })
	w.top = 0 // it may have been forged
	for seq := range w.passages {
		w.top = max(w.top, seq)
	}
}

// reported notes which own probes the other half has got, as it said at that time of this
// node. A probe is lost if it is missing between others, or for longer than lateNS.
func (w *way) reported(got []Stamp, at uint64) {
	var first, last uint32
	for _, there := range got {
		if p := w.passages[there.Seq]; p != nil && p.left.Seq > 0 {
			p.came = there
		}
		if last = max(last, there.Seq); first == 0 || there.Seq < first {
			first = there.Seq
		}
	}
	for seq, p := range w.passages {
		if seq > first && (seq < last || at > p.at+lateNS) {
			p.gone = true
		}
	}
}

// fates counts the own probes of an interval whose fate is known.
func (w *way) fates(from, until uint64, d *Direction) {
	for seq, p := range w.passages {
		if p.at < from || p.at >= until || !p.whole() && !p.gone {
			continue
		}
		lost := uint64(1)
		if p.whole() {
			lost = 0
		}
		d.add(lost, full(seq))
	}
}

// add counts a probe.
func (d *Direction) add(lost uint64, full bool) {
	d.Probes, d.Lost = d.Probes+1, d.Lost+lost
	if full {
		d.Full, d.FullLost = d.Full+1, d.FullLost+lost
	}
}

// gaps counts the other half's probes of an interval. It numbers them, so what lacks was lost.
func (w *way) gaps(from, until uint64, d *Direction) {
	highest := uint32(0)
	for seq, p := range w.passages {
		if p.at < from || p.at >= until {
			continue
		}
		highest = max(highest, seq)
		if p.came.Seq > 0 {
			d.add(0, full(seq))
		}
	}
	if highest == 0 {
		return
	}
	if sent := uint64(highest - w.highest); w.highest > 0 && highest > w.highest && sent > d.Probes && sent < maxGap {
		d.Probes, d.Lost = sent, sent-d.Probes
		if fulls := uint64(highest/fullEvery - w.highest/fullEvery); fulls > d.Full {
			d.Full, d.FullLost = fulls, fulls-d.Full
		}
	}
	w.highest = highest // also if it is lower: the last was forged
}

// median is the median balance.
func median(all []*passage) int64 {
	var balances []int64
	for _, p := range all {
		balances = append(balances, p.balance())
	}
	slices.Sort(balances)
	return balances[(len(balances)-1)/2]
}

// maxInterval bounds how many packets an interval can have: ten times what a link carries.
const maxInterval = 1 << 34

// maxFrame is the length of a frame, at most.
const maxFrame = 1 << 16

// count counts the packets of an interval, and those that did not come. Packets may overtake
// probes, or the reverse, so a packet counts as missing only if it still is at half of the probes of
// the next interval. How far they overtake is seen in the first interval. It reports whether the counters are possible.
func (w *way) count(from, until uint64, d *Direction) bool {
	now, later := w.between(from, until), w.between(until, until+intervalNS)
	if len(now) == 0 {
		return true // what passes now counts in the next interval
	}
	last := now[len(now)-1]
	missing := last.balance()
	if len(later) > 0 {
		missing = median(later)
	}
	if !w.counted {
		for _, p := range later {
			missing = max(missing, p.balance())
		}
		w.counted, w.sent, w.bytes, w.missing = true, last.left.Count, last.came.Bytes, missing
		return true
	}
	if last.left.Count-w.sent > maxInterval || // also if it has fallen
		missing-w.missing > maxInterval || w.missing-missing > maxInterval {
		return false
	}
	if last.came.Bytes-w.bytes > maxInterval*maxFrame {
		return false
	}
	d.Sent, d.Bytes = last.left.Count-w.sent, last.came.Bytes-w.bytes
	d.Missing = min(d.Sent, uint64(max(0, missing-w.missing)))
	w.sent, w.bytes, w.missing = last.left.Count, last.came.Bytes, max(w.missing, missing)
	return true
}
