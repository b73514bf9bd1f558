// SPDX-License-Identifier: Apache-2.0

package trace

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/drayage/dray/internal/result/stats"
)

// stage is the way of packets from one observed point to the next: a link or a function, or
// several of them with nothing to observe in between.
type stage struct {
	parts []part
	from  int // index of the point, in those of the path; 0 may be one that only the sender observes
	to    int
}

// part is a link or a function.
type part struct {
	name     string
	function bool
}

// stages are the ways between the points that can be observed. The sender itself stamps its
// packets, so the first point always can.
func stages(all []point) []stage {
	var list []stage
	now := stage{}
	for i := 1; i < len(all); i++ {
		now.parts = append(now.parts, between(all[i-1], all[i]))
		if all[i].why == "" {
			now.to = i
			list = append(list, now)
			now = stage{from: i}
		}
	}
	return list
}

// between is what is between two adjacent points.
func between(a, b point) part {
	if a.sent {
		return part{name: a.link}
	}
	return part{name: b.end.Function, function: true}
}

// passage is what one trial shows of a path.
type passage struct {
	entered, passed []uint64  // sampled packets, by stage; entered is 0 if nothing counts them
	delays          [][]int64 // ns, by stage, of packets that passed it
	rates           []float64 // packets per second that came out, by stage; 0: not known
	whole           [][]int64 // of each packet that passed all stages, its delay in each, ns
}

// match joins the sightings of a trial's packets. by has those of each observed point, in the
// order of the path; nil for a first point at which only the sender stamped. ahead is how far
// the clock of the sightings is ahead of that of the sender, ns.
func match(by []*view, ahead int64, sent stream) passage {
	times := timesOf(by)
	n := len(by) - 1
	p := passage{entered: make([]uint64, n), passed: make([]uint64, n), delays: make([][]int64, n)}
	from := start(times)
	followed := sent.keep.count(streamOf(by), from, sent.packets)
	if by[0] == nil {
		times[0] = sentTimes(by, ahead)
	}
	for number := range numbers(times) {
		if number >= from {
			p.add(number, times)
		}
	}
	for i := range n {
		if by[i] == nil || by[i].missed+by[i+1].missed > 0 {
			p.entered[i] = 0 // one that was not seen need not be lost
		}
		rate := 0.0
		if by[i+1].missed == 0 {
			rate = sent.rate(followed, since(times[i+1], from))
		}
		p.rates = append(p.rates, rate)
	}
	return p
}

// add adds one packet.
func (p *passage) add(number uint64, times []map[uint64]int64) {
	var row []int64
	for i := range p.passed {
		before, in := times[i][number]
		after, out := times[i+1][number]
		if in {
			p.entered[i]++
		}
		if in && out {
			p.passed[i]++
			p.delays[i] = append(p.delays[i], max(0, after-before))
			row = append(row, max(0, after-before))
		}
	}
	if len(row) == len(p.passed) {
		p.whole = append(p.whole, row)
	}
}

// stream is what the sender of a trial sent.
type stream struct {
	keep    sampling
	packets uint64
	span    time.Duration // the longer of the sender's and the receiver's time
}

// rate is how many packets a second came out where so many of the followed ones did; 0: none.
// Times of sightings would not do: a sender that begins late catches up, in less time.
func (s stream) rate(followed, came uint64) float64 {
	if followed == 0 || s.span <= 0 {
		return 0
	}
	return float64(s.packets) / s.span.Seconds() * min(1, float64(came)/float64(followed))
}

// since is how many packets from a number on were seen.
func since(seen map[uint64]int64, from uint64) (n uint64) {
	for number := range seen {
		if number >= from {
			n++
		}
	}
	return n
}

// streamOf is the stream of a trial: most packets have it.
func streamOf(by []*view) uint32 {
	count := map[uint32]int{}
	for _, v := range by {
		if v == nil {
			continue
		}
		for _, s := range v.sightings {
			count[s.stream]++
		}
	}
	best := uint32(0)
	for stream, n := range count {
		if n > count[best] || n == count[best] && stream < best {
			best = stream
		}
	}
	return best
}

// timesOf is when each packet of the stream was first seen at each point.
func timesOf(by []*view) []map[uint64]int64 {
	times := make([]map[uint64]int64, len(by))
	ofStream(by, func(i int, s sighting) {
		if times[i] == nil {
			times[i] = map[uint64]int64{}
		}
		if _, again := times[i][s.number]; !again {
			times[i][s.number] = s.at
		}
	})
	return times
}

// sentTimes is when the sender handed over each packet that was seen anywhere.
func sentTimes(by []*view, ahead int64) map[uint64]int64 {
	sent := map[uint64]int64{}
	ofStream(by, func(_ int, s sighting) { sent[s.number] = s.sent + ahead })
	return sent
}

// ofStream passes on the sightings of the trial's stream, with the index of their point.
func ofStream(by []*view, take func(int, sighting)) {
	stream := streamOf(by)
	for i, v := range by {
		if v == nil {
			continue
		}
		for _, s := range v.sightings {
			if s.stream == stream {
				take(i, s)
			}
		}
	}
}

// start is the first packet that every point can have seen: the last of their taps to begin
// decides.
func start(times []map[uint64]int64) uint64 {
	first := uint64(0)
	for _, seen := range times {
		if len(seen) > 0 {
			first = max(first, slices.Min(slices.Collect(maps.Keys(seen))))
		}
	}
	return first
}

func numbers(times []map[uint64]int64) map[uint64]bool {
	all := map[uint64]bool{}
	for _, seen := range times {
		for number := range seen {
			all[number] = true
		}
	}
	return all
}

// slowest is how many of so many packets count as slow: those at or beyond Decisive, but at least
// as many as a quantile needs beyond it; 0: these would be over half of all.
func slowest(packets int) int {
	if packets < 2*stats.Beyond {
		return 0
	}
	return max(stats.Beyond, packets-int(float64(packets)*Decisive/100))
}

// shares are the means of each stage's delay among the n slowest packets, and the mean of their
// sums, ns.
func shares(whole [][]int64, n int) (means []float64, sum float64) {
	total := func(row []int64) (sum int64) {
		for _, d := range row {
			sum += d
		}
		return sum
	}
	sorted := slices.SortedFunc(slices.Values(whole), func(a, b []int64) int { return cmp.Compare(total(a), total(b)) })
	slow := sorted[len(sorted)-n:]
	means = make([]float64, len(whole[0]))
	for _, row := range slow {
		for i, d := range row {
			means[i] += float64(d) / float64(len(slow))
		}
		sum += float64(total(row)) / float64(len(slow))
	}
	return means, sum
}
