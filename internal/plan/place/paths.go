// SPDX-License-Identifier: Apache-2.0

package place

import "time"

// unplaced is a link of which too few ends are placed to tell its cost.
func (l *Link) unplaced() joined {
	return joined{cost: l.least(), delays: l.leastDelays(l.Local, l.Apart, 0)}
}

// leastDelays are what the link adds to each of its paths at least, over one of these ways
// and lines of that delay.
func (l *Link) leastDelays(local *Way, apart []Way, lines time.Duration) []time.Duration {
	if len(l.Paths) == 0 {
		return nil
	}
	least := make([]time.Duration, len(l.Paths))
	for i := range least {
		least[i] = Unbounded
		if local != nil {
			least[i] = local.Delays[i]
		}
		for w := range apart {
			least[i] = min(least[i], apart[w].Delays[i]+lines)
		}
	}
	return least
}

// delays are what the way adds to each path of its link over lines of that delay.
func (w *Way) delays(lines time.Duration) []time.Duration {
	if lines == 0 || len(w.Delays) == 0 {
		return w.Delays
	}
	sum := make([]time.Duration, len(w.Delays))
	for i, d := range w.Delays {
		sum[i] = d + lines
	}
	return sum
}

// delay adds what a link adds to its paths, or with a negative sign removes it; false: a
// path takes longer than it may. The cost has that, too.
func (s *state) delay(l *Link, delays []time.Duration, sign time.Duration) bool {
	inTime := true
	for i, d := range delays {
		path := l.Paths[i]
		s.cost = s.cost.minus(s.late(path))
		s.paths[path] += sign * d
		late := s.late(path)
		s.cost = s.cost.plus(late)
		inTime = inTime && late == Cost{}
	}
	return inTime
}

// late is what a path costs that takes longer than it may.
func (s *state) late(path int) Cost {
	over := s.paths[path] - s.Paths[path].MaxDelay
	if over <= 0 {
		return Cost{}
	}
	return Cost{Unmet: 1, Over: over}
}
