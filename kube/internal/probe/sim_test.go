// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"encoding/binary"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

const ms = uint64(time.Millisecond)

// clock is that of a node: so far ahead of the true time, and faster by so many parts of a million.
type clock struct{ ahead, ppm int64 }

func (c clock) at(true uint64) uint64 {
	return uint64(int64(true) + c.ahead + int64(true)/1000*c.ppm/1000)
}

// end is a half with what its kernel counts.
type end struct {
	*Session
	clock          clock
	sent, received uint64
	bytes          uint64 // received
}

// flight is something on the way.
type flight struct {
	at     uint64
	probe  []byte
	seq    uint32
	number uint64 // of packets of applications
}

// line is a simulated link. delay and lost are of a direction: 0 from a to b.
type line struct {
	ends  [2]*end
	delay func(way int, now uint64) uint64
	lost  func(way int, probe bool) bool
	rate  uint64 // packets of applications between two probes, each way
	late  uint64 // how much later packets arrive than probes
	forge func(way int, probe []byte)
	mtu   [2]int // of each direction; 0: any frame passes
	air   [2][]flight
	now   uint64
}

func newLine(a, b clock) *line {
	random := rand.New(rand.NewPCG(1, 2))
	session := func(epoch uint64) *Session {
		return NewSession(Pair{To: [6]byte{1}, From: [6]byte{2}, MTU: 1500}, epoch)
	}
	return &line{
		ends:  [2]*end{{Session: session(7), clock: a}, {Session: session(9), clock: b}},
		delay: func(int, uint64) uint64 { return 100_000 + random.Uint64N(50_000) },
		lost:  func(int, bool) bool { return false },
		rate:  25, now: 1000 * ms,
	}
}

// run lets time pass.
func (l *line) run(d time.Duration) {
	for until := l.now + uint64(d); l.now < until; l.now += uint64(Every) {
		for way := range 2 {
			l.arrive(way)
			l.step(way)
		}
	}
}

// arrive delivers what has come to the end of a direction.
func (l *line) arrive(way int) {
	to := l.ends[1-way]
	slices.SortFunc(l.air[way], func(a, b flight) int { return int(int64(a.at) - int64(b.at)) })
	for len(l.air[way]) > 0 && l.air[way][0].at <= l.now {
		f := l.air[way][0]
		l.air[way] = l.air[way][1:]
		to.received += f.number
		to.bytes += 100 * f.number
		if f.probe != nil {
			to.Received(f.probe, Stamp{f.seq, to.clock.at(f.at), to.received, to.bytes})
		}
	}
}

// step sends packets and a probe.
func (l *line) step(way int) {
	from := l.ends[way]
	at := l.now + uint64(way)*10*ms
	for range l.rate {
		from.sent++
		if !l.lost(way, false) {
			l.air[way] = append(l.air[way], flight{at: at + l.delay(way, at) + l.late, number: 1})
		}
	}
	probe, seq := from.Next()
	if l.forge != nil {
		l.forge(way, probe)
	}
	from.Sent(Stamp{seq, from.clock.at(at), from.sent, 100 * from.sent})
	if !l.lost(way, true) && (l.mtu[way] == 0 || len(probe) <= ethernet+l.mtu[way]) {
		l.air[way] = append(l.air[way], flight{at: at + l.delay(way, at), probe: probe, seq: seq})
	}
	from.Tick(from.clock.at(at))
}

// A direction that is too narrow for the MTU loses the largest probes, and both ends say so.
func TestTheLargestProbesAreCounted(t *testing.T) {
	for _, mtu := range []int{1500, 1499} {
		l := newLine(clock{}, clock{})
		l.mtu[0] = mtu
		l.run(20 * time.Second)
		for end := range 2 {
			for _, i := range l.all(t, end, 6) {
				narrow, wide := i.Out, i.In
				if end == 1 {
					narrow, wide = wide, narrow
				}
				lost := uint64(0)
				if mtu < 1500 {
					lost = narrow.Full
				}
				if narrow.Full < 2 || narrow.FullLost != lost || narrow.Lost != lost || wide.Full < 2 || wide.Lost > 0 {
					t.Errorf("MTU %d, end %d: %+v, %+v", mtu, end, narrow, wide)
				}
			}
		}
	}
}

// all are the intervals that an end has closed, but for the first, in which it begins.
func (l *line) all(t *testing.T, end, atLeast int) []Interval {
	t.Helper()
	all := l.ends[end].Since(1)
	if len(all) < atLeast {
		t.Fatalf("only %d intervals", len(all))
	}
	return all
}

// Whatever the clocks, the bounds contain the true delays and the true difference.
func TestBoundsContainTheTruth(t *testing.T) {
	for _, b := range []clock{{}, {ahead: 3_600_000_000_000}, {ahead: -900_000_000, ppm: 200}, {ppm: -400}} {
		l := newLine(clock{}, b)
		slow := uint64(2 * ms) // one way is slower, which no clock can tell
		fast := l.delay
		l.delay = func(way int, now uint64) uint64 {
			if way == 0 {
				return slow
			}
			return fast(way, now)
		}
		l.run(20 * time.Second)
		for end := range 2 {
			for _, i := range l.all(t, end, 6) {
				ways := [2]Direction{i.Out, i.In}
				if end == 1 {
					ways[0], ways[1] = i.In, i.Out
				}
				if len(ways[0].Delays) < 70 || len(ways[1].Delays) < 70 || len(i.Rounds) < 70 || i.Clock == nil {
					t.Fatalf("clock %+v: %+v", b, i)
				}
				for _, d := range ways[0].Delays {
					if d.Low() > int64(slow) || d.High() < int64(slow) || d.High() > int64(slow)+200_000 {
						t.Errorf("clock %+v: a delay of %d is between %d and %d", b, slow, d.Low(), d.High())
					}
				}
				for _, d := range ways[1].Delays {
					if d.High() < 100_000 || d.Low() > 150_000 {
						t.Errorf("clock %+v: a delay of 100 to 150 µs is between %d and %d", b, d.Low(), d.High())
					}
				}
				for _, r := range i.Rounds {
					if r > int64(slow)+150_000 || r < int64(slow)+80_000 {
						t.Errorf("clock %+v: a round trip of %d", b, r)
					}
				}
				ahead := b.ahead + int64(l.now)/1_000_000*b.ppm
				if end == 1 {
					ahead = -ahead
				}
				if most := int64(20_000)*max(b.ppm, -b.ppm) + 10_000; i.Clock[0] > ahead+most || i.Clock[1] < ahead-most {
					t.Errorf("clock %+v is ahead by %d, not %v", b, ahead, *i.Clock)
				}
			}
		}
	}
}

// Packets on the way are not lost, and both ends count the same losses.
func TestLossesAreCountedExactly(t *testing.T) {
	l := newLine(clock{}, clock{ahead: 1e12})
	l.delay = func(int, uint64) uint64 { return 40 * ms }
	l.run(6 * time.Second)
	dropped, n := uint64(0), 0
	l.lost = func(way int, probe bool) bool {
		if n++; probe || way == 1 || n%20 != 0 {
			return false
		}
		dropped++
		return true
	}
	l.run(10 * time.Second)
	l.lost = func(int, bool) bool { return false }
	l.run(10 * time.Second)
	for end := range 2 {
		var there, back uint64
		for _, i := range l.all(t, end, 10) {
			ways := [2]Direction{i.Out, i.In}
			there, back = there+ways[end].Missing, back+ways[1-end].Missing
			if ways[1-end].Bytes != 80*25*100 {
				t.Errorf("end %d: %d bytes the other way", end, ways[1-end].Bytes)
			}
			if i.Out.Sent != 80*25 || i.In.Sent != 80*25 || i.Out.Lost+i.In.Lost > 0 {
				t.Errorf("end %d: %+v", end, i.Out)
			}
		}
		if there != dropped || back != 0 {
			t.Errorf("end %d counts %d and %d missing, not %d and 0", end, there, back, dropped)
		}
	}
}

// Packets that a burst holds up between two probes have not been lost.
func TestPacketsBehindTheirProbeAreNotLost(t *testing.T) {
	l := newLine(clock{}, clock{})
	l.run(7 * time.Second)
	for range 40 { // some burst is at the end of an interval
		l.late = 150 * ms
		l.run(150 * time.Millisecond)
		l.late = 0
		l.run(600 * time.Millisecond)
	}
	for _, i := range l.all(t, 0, 12) {
		if i.Out.Missing+i.In.Missing > 0 {
			t.Errorf("%d and %d are missing", i.Out.Missing, i.In.Missing)
		}
	}
}

// A direction that loses every fifth probe is the only one blamed; so is one that loses all.
func TestLostProbesAreBlamedOnTheirDirection(t *testing.T) {
	for _, every := range []int{5, 1} {
		l := newLine(clock{}, clock{ahead: -5e8})
		l.run(6 * time.Second)
		n := 0
		l.lost = func(way int, probe bool) bool {
			if way == 1 || !probe {
				return false
			}
			n++
			return n%every == 0
		}
		before := len(l.ends[0].Since(0))
		l.run(20 * time.Second)
		var lost, probes, back uint64
		for _, i := range l.ends[0].Since(uint64(before) + 2) {
			lost, probes, back = lost+i.Out.Lost, probes+i.Out.Probes, back+i.In.Lost
		}
		if share := float64(lost) / float64(probes); probes < 300 || share < 0.95/float64(every) || share > 1.05/float64(every) || back > 0 {
			t.Errorf("every %d. lost: %d of %d, and %d the other way", every, lost, probes, back)
		}
	}
}

// stamps changes all stamps of a probe about what its half has sent.
func stamps(field int, value uint64) func([]byte) {
	return func(b []byte) {
		for i := range int(b[offsetSizes]) {
			binary.BigEndian.PutUint64(b[stampsAt+i*stampBytes+field:], value)
		}
	}
}

// received changes all stamps of a probe about what its half has got.
func received(field int, value uint64) func([]byte) {
	return func(b []byte) {
		for i := range int(b[offsetSizes+1]) {
			binary.BigEndian.PutUint64(b[stampsAt+(int(b[offsetSizes])+i)*stampBytes+field:], value)
		}
	}
}

// What the other half cannot have measured ends the interval, not the program, and an honest half
// is believed again.
func TestAbsurdHalves(t *testing.T) {
	const ns, count, bytes = 4, 12, 20
	for name, forge := range map[string]func(b []byte){
		"counts that fall":     stamps(count, 3),
		"counts beyond reason": stamps(count, maxCount),
		"counts beyond limits": stamps(count, 1<<63),
		"times before all":     stamps(ns, 0),
		"times beyond limits":  stamps(ns, 1<<63+7),
		"bytes beyond limits":  stamps(bytes, 1<<64-1),
		"far probes":           func(b []byte) { binary.BigEndian.PutUint32(b[stampsAt:], 1<<32-1) },
		"too many stamps":      func(b []byte) { b[offsetSizes] = 255 },
		"no epoch":             func(b []byte) { clear(b[offsetEpoch : offsetEpoch+8]) },
		"changing epochs":      func(b []byte) { binary.BigEndian.PutUint64(b[offsetEpoch:], rand.Uint64()|1) },
		"nonsense":             func(b []byte) { clear(b[OffsetType:]) },
		"arrived before all":   received(ns, 0),
		"nothing has arrived":  received(count, 0),
		"all has arrived":      received(count, maxCount),
		"no bytes have":        received(bytes, 0),
		"all bytes have":       received(bytes, maxCount),
	} {
		t.Run(name, func(t *testing.T) {
			l := newLine(clock{}, clock{})
			l.run(6 * time.Second)
			l.forge = func(way int, b []byte) {
				if way == 1 {
					forge(b)
				}
			}
			l.run(10 * time.Second)
			l.forge = nil
			l.run(16 * time.Second)
			all := l.all(t, 0, 2)
			if last := all[len(all)-1]; last.Out.Sent != 80*25 || last.Out.Missing+last.In.Missing+last.Out.Lost > 0 || len(last.Out.Delays) < 70 {
				t.Errorf("after all: %+v", last)
			}
			for _, i := range all {
				for _, d := range []Direction{i.Out, i.In} {
					if d.Sent > 1e6 || d.Missing > d.Sent || d.Bytes > 1e9 || d.Probes > maxGap {
						t.Errorf("interval %d: sent %d, missing %d, %d bytes, %d probes", i.Number, d.Sent, d.Missing, d.Bytes, d.Probes)
					}
				}
			}
		})
	}
}

// A flood of forged probes takes no more memory than some honest ones, and ends with them.
func TestAFloodIsForgotten(t *testing.T) {
	l := newLine(clock{}, clock{})
	l.run(6 * time.Second)
	for seq := range uint32(10 * maxPassages) {
		b, _ := l.ends[1].Next()
		binary.BigEndian.PutUint32(b[OffsetSeq:], seq+1000)
		l.ends[0].Received(b, Stamp{seq + 1000, l.ends[0].clock.at(l.now), 1, 1})
	}
	if n := len(l.ends[0].in.passages); n > maxPassages {
		t.Errorf("%d passages are remembered", n)
	}
	l.run(12 * time.Second)
	n := 0
	l.lost = func(way int, probe bool) bool { n++; return way == 1 && probe && n%10 < 5 }
	l.run(10 * time.Second)
	for end := range 2 {
		all := l.all(t, end, 2)
		last := all[len(all)-2]
		ways := [2]Direction{last.Out, last.In}
		if ways[end].Probes < 70 || ways[1-end].Probes < 70 || ways[end].Sent < 79*25 || ways[end].Sent > 81*25 || ways[end].Lost > 0 || ways[1-end].Lost < 10 {
			t.Errorf("end %d, after all: %d and %d of %d and %d lost, sent %d", end, ways[end].Lost, ways[1-end].Lost, ways[end].Probes, ways[1-end].Probes, ways[end].Sent)
		}
	}
}

// A half that begins again counts from 0, and nothing before is mixed with it.
func TestARestartBeginsAgain(t *testing.T) {
	l := newLine(clock{}, clock{})
	l.run(10 * time.Second)
	l.ends[1] = &end{Session: NewSession(Pair{To: [6]byte{1}, From: [6]byte{2}}, 11), clock: clock{ahead: 5e9}}
	l.run(12 * time.Second)
	for _, i := range l.all(t, 1, 3) {
		if i.Out.Probes < 70 {
			t.Errorf("the new half is told of %d probes", i.Out.Probes)
		}
	}
	all := l.all(t, 0, 6)
	for n, i := range all {
		if n > 0 && i.Number != all[n-1].Number+1 {
			t.Errorf("interval %d after %d", i.Number, all[n-1].Number)
		}
		if i.Out.Missing+i.In.Missing > 0 {
			t.Errorf("%+v", i)
		}
		for _, d := range i.In.Delays {
			if d.High() > int64(ms) {
				t.Errorf("a delay of up to %d", d.High())
			}
		}
	}
}

// A clock that jumps is no delay, and neither is a process that was stopped.
func TestAJumpIsNoDelay(t *testing.T) {
	l := newLine(clock{}, clock{})
	l.run(9 * time.Second)
	l.ends[1].clock.ahead += 1e9
	l.run(9 * time.Second)
	l.now += 600_000 * ms
	l.run(9 * time.Second)
	for _, i := range l.all(t, 0, 6) {
		for _, d := range append(i.Out.Delays, i.In.Delays...) {
			if d.High() > int64(ms) || d.High() < d.Low() {
				t.Errorf("a delay from %d to %d", d.Low(), d.High())
			}
		}
	}
}

func TestParseRefusesShortFrames(t *testing.T) {
	s := NewSession(Pair{To: [6]byte{1}, From: [6]byte{2}}, 5)
	for range 30 {
		s.Sent(Stamp{s.seq, 1, 1, 1})
		s.Next()
	}
	b, _ := s.Next()
	if _, err := parse(b); err != nil {
		t.Fatal(err)
	}
	for n := range b {
		if _, err := parse(b[:n]); err == nil {
			t.Errorf("%d of %d bytes are a probe", n, len(b))
		}
	}
	for _, bad := range []Stamp{{0, 1, 1, 1}, {1, maxNS + 1, 1, 1}, {1, 1, maxCount + 1, 1}, {1, 1, 1, maxCount + 1}} {
		f := frame{seq: 1, epoch: 1, received: []Stamp{bad}}
		if _, err := parse(f.marshal([6]byte{}, [6]byte{})); err == nil {
			t.Errorf("%+v is a stamp", bad)
		}
	}
	if most := MaxPayload + OffsetMagic; stampsAt+(sentStamps+receivedStamps)*stampBytes > most {
		t.Errorf("a probe has more than %d bytes", most)
	}
}
