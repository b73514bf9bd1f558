// SPDX-License-Identifier: Apache-2.0

package probe

import "slices"

// Session measures one link from one half. It has no lock and reads no clock.
type Session struct {
	pair  Pair
	epoch uint64

	peer uint64 // the other half's epoch; 0: not heard of yet
	seq  uint32 // of the latest own probe
	out  way    // own probes
	in   way    // the other half's

	begun  uint64 // when the first interval of this pair of epochs began; 0: it has not
	open   uint64 // the interval that is closed next, since begun
	number uint64 // of the latest closed interval; never goes back
	closed []Interval
}

// Pair is the two ports of a link.
type Pair struct {
	To, From [6]byte // MACs of the other port and of the session's own
	OneClock bool    // both are on this node
	MTU      int     // of both, bytes of layer 3; at least MaxPayload
}

// NewSession measures between two ports. The epoch is a random number, other than 0.
func NewSession(p Pair, epoch uint64) *Session {
	s := &Session{pair: p, epoch: epoch}
	s.forget()
	return s
}

// Epoch is the number of the session.
func (s *Session) Epoch() uint64 { return s.epoch }

// forget begins with nothing known of the other half. Intervals that are closed stay true.
func (s *Session) forget() {
	s.begun, s.open, s.out, s.in = 0, 0, newWay(), newWay()
}

// Next is the next probe to send, with its number.
func (s *Session) Next() (packet []byte, seq uint32) {
	s.seq++
	f := frame{seq: s.seq, epoch: s.epoch, peer: s.peer}
	f.sent = s.out.latest(sentStamps, func(p *passage) Stamp { return p.left })
	f.received = s.in.latest(receivedStamps, func(p *passage) Stamp { return p.came })
	packet = f.marshal(s.pair.To, s.pair.From)
	if full(s.seq) {
		packet = append(packet, make([]byte, max(0, ethernet+s.pair.MTU-len(packet)))...)
	}
	return packet, s.seq
}

// Sent says when the kernel sent an own probe.
func (s *Session) Sent(at Stamp) {
	if at.plausible() {
		s.out.at(at.Seq, at.NS).left = at
	}
}

// Received takes a frame. came is what this node's kernel noted about it.
func (s *Session) Received(b []byte, came Stamp) {
	f, err := parse(b)
	if err != nil || !came.plausible() || f.seq != came.Seq || f.epoch == s.epoch {
		return
	}
	if f.epoch != s.peer { // the other half has started to measure again
		s.peer = f.epoch
		s.forget()
	}
	if s.begun == 0 {
		s.begun = came.NS
	}
	p := s.in.at(came.Seq, came.NS)
	p.came, p.at = came, came.NS
	for _, left := range f.sent {
		s.in.at(left.Seq, came.NS).left = left
	}
	if f.peer == s.epoch { // otherwise it tells of an earlier session here
		s.out.reported(f.received, came.NS)
	}
}

// Since are the closed intervals after the one with that number, as far as they are kept.
func (s *Session) Since(number uint64) []Interval {
	i, _ := slices.BinarySearchFunc(s.closed, number+1, func(i Interval, n uint64) int {
		switch {
		case i.Number < n:
			return -1
		case i.Number > n:
			return 1
		}
		return 0
	})
	return slices.Clone(s.closed[i:])
}

// Tick closes what intervals are over at that time of this node. An interval is closed one
// interval later: until then, probes and stamps may be on the way.
func (s *Session) Tick(now uint64) {
	if s.begun == 0 || now < s.begun {
		return
	}
	if (now-s.begun)/intervalNS > s.open+keepIntervals { // this process was stopped for long
		s.forget()
		return
	}
	for s.begun > 0 && now >= s.begun+(s.open+2)*intervalNS {
		s.close()
	}
}

// close closes one interval.
func (s *Session) close() {
	from := s.begun + s.open*intervalNS
	until := from + intervalNS
	s.open++
	i := Interval{Duration: 2e9}
	var sane bool
	if i.Clock, sane = bounds(&s.out, &s.in, from, until, s.pair.OneClock, &i); !sane || !s.out.count(from, until, &i.Out) || !s.in.count(from, until, &i.In) {
		s.forget() // a clock that jumps, or counters that are none
		return
	}
	s.out.fates(from, until, &i.Out)
	s.in.gaps(from, until, &i.In)
	s.out.prune(from)
	s.in.prune(from)
	s.number++
	i.Number = s.number
	s.closed = append(s.closed, i)
	s.closed = s.closed[max(0, len(s.closed)-keepIntervals):]
}
