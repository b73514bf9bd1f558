// SPDX-License-Identifier: Apache-2.0

package verdict

import (
	"github.com/drayage/dray/internal/result/record"
	"github.com/drayage/dray/internal/result/stats"
)

// A run may be prolonged if its figures decide nothing: it looks at them
// twice. Each look may err, and what both may err together is what one alone
// would be allowed: 4 % at the first and 1 % at the second make the 5 % of a
// confidence of 95 % (Bonferroni's inequality, which holds however the looks
// depend on each other). What the first look decides stands.
var levelsOfTwo = []float64{0.96, 0.99}

// MaxLooks is the most looks that a run can be made for.
const MaxLooks = 2

// Prolonged is how many times as many trials there are at the second look.
const Prolonged = 4

// unclear is for what nobody can say of how many more trials would decide.
const unclear = Prolonged

// worthwhile is how many times as many trials may seem to be needed for a run to
// be prolonged: an estimate from few trials may be too high, most of all where
// one of them was out of line.
const worthwhile = 2.5 * Prolonged

// levels is the confidence of each look that the trials were made for.
func levels(trials []record.Trial) []float64 {
	for _, t := range trials {
		if t.Looks == MaxLooks {
			return levelsOfTwo
		}
	}
	return []float64{stats.Confidence}
}

// atLooks judges at each look until one decides.
func (r rule) atLooks(trials []record.Trial) Finding {
	var f Finding
	judged := 0
	for look, level := range levels(trials) {
		seen := upTo(look, trials)
		if len(seen) == judged {
			continue // the run was not prolonged, for this one at least
		}
		judged = len(seen)
		f = r.judge(level, seen)
		if f.Verdict != NotMeasurable {
			if look > 0 {
				f.Reason += ", as the prolonged run shows"
			}
			return f
		}
	}
	return f
}

// upTo is the trials that count at a look.
func upTo(look int, trials []record.Trial) []record.Trial {
	var seen []record.Trial
	for _, t := range trials {
		if t.Look <= look {
			seen = append(seen, t)
		}
	}
	return seen
}

// Open is what trials have not decided, and more of them may.
type Open struct {
	Requirement string
	Quantity    record.Quantity // that the trials measure
	Direction   Direction
}

// Undecided is what of a link's requirements a longer run may decide.
func Undecided(l Link, trials []record.Trial) []Open {
	var open []Open
	mine := ofLink(l, trials)
	for _, r := range rules(l, trials) {
		for _, d := range l.Directions {
			forth := r.of(mine, d)
			if len(forth) == 0 {
				continue
			}
			f := r.atLooks(forth)
			if f.Verdict == NotMeasurable && f.more > 0 && f.more <= worthwhile {
				open = append(open, Open{r.requirement, r.quantity, d})
			}
		}
	}
	return open
}
