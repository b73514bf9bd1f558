// SPDX-License-Identifier: Apache-2.0

package verdict

import (
	"slices"

	"github.com/drayage/dray/internal/result/record"
	"github.com/drayage/dray/internal/result/stats"
)

// An undecided run may be prolonged, so its figures are judged at two looks. Each look
// may err; together they may err as often as one alone. 4 % at the first and 1 % at the
// second make the 5 % of 95 % confidence. (Bonferroni's inequality holds for any
// dependence between the looks.) A decision at the first look stands.
var levelsOfTwo = []float64{0.96, 0.99}

// MaxLooks is the maximum number of looks in a run.
const MaxLooks = 2

// Prolonged is the factor between the trials of the second look and the first.
const Prolonged = 4

// unclear is for cases in which the number of trials needed is unknown.
const unclear = Prolonged

// worthwhile is the largest estimated factor of trials for which a run is prolonged: an
// estimate from few trials may be too high, above all if one of them was an outlier.
const worthwhile = 2.5 * Prolonged

// levels is the confidence of each look planned for the trials.
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
			continue // the run was not prolonged, at least not for this one
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

// upTo returns the trials that count at a look.
func upTo(look int, trials []record.Trial) []record.Trial {
	later := func(t record.Trial) bool { return t.Look > look }
	if !slices.ContainsFunc(trials, later) {
		return trials
	}
	return slices.DeleteFunc(slices.Clone(trials), later)
}

// Open is a requirement that more trials may decide.
type Open struct {
	Requirement string
	Quantity    record.Quantity // measured by the trials
	Direction   Direction
}

// Undecided lists the link's requirements that a longer run may decide.
func Undecided(l Link, trials []record.Trial) []Open {
	var open []Open
	mine := ofLink(l, trials)
	for _, r := range rules(l, trials) {
		for _, d := range l.Directions {
			forth := r.of(mine, d)
			if len(forth) == 0 || l.passive && idle(forth) {
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
