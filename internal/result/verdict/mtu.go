// SPDX-License-Identifier: Apache-2.0

package verdict

import (
	"fmt"
	"math"

	"github.com/drayage/dray/internal/result/record"
)

// pathMTU judges whether packets of the wanted size pass. The answer is not random, so
// one round decides and contradicting rounds do not.
func pathMTU(wanted int) func(float64, []record.Trial) Finding {
	return func(_ float64, trials []record.Trial) Finding {
		var used []record.Trial
		var rejected []string
		passed, largest := 0, math.Inf(1)
		for _, t := range trials {
			m := t.PathMTU
			switch {
			case m == nil:
				rejected = append(rejected, t.ID+": "+noResult(t))
				continue
			case m.Passed && m.Wanted < wanted, !m.Passed && m.Wanted > wanted:
				rejected = append(rejected, fmt.Sprintf("%s: it tried %d B", t.ID, m.Wanted))
				continue
			case m.Passed:
				passed++
			}
			used = append(used, t)
			largest = min(largest, float64(m.Largest))
		}
		return decideMTU(newFinding(used, rejected), passed, wanted, largest)
	}
}

// decideMTU uses the largest packet that passed in every round, among the sizes tried.
func decideMTU(f Finding, passed, wanted int, largest float64) Finding {
	n := len(f.Trials)
	switch {
	case n == 0:
		f.Reason = "no trial sent a packet of that size"
		if len(f.Rejected) > 0 {
			f.Reason += " (" + f.Rejected[0] + ")"
		}
		f.Needs = "one trial that can send it"
		return f
	case passed == n:
		f.Verdict, f.Bound = Met, atLeast(float64(wanted), UnitBytes, fmt.Sprintf("%d B", wanted))
		f.Reason = fmt.Sprintf("packets of %d B passed in every round", wanted)
	case passed == 0:
		f.Verdict, f.Bound = Missed, below(float64(wanted), UnitBytes, fmt.Sprintf("%d B", wanted))
		f.Reason = fmt.Sprintf("packets of %d B passed in no round", wanted)
	default:
		f.Reason = "rounds disagree"
		f.Needs = "a path that does not change between rounds"
	}
	f.Measured = figure(largest, UnitBytes, fmt.Sprintf("passed in %d of %s", passed, plural(n, "round")))
	f.badness = float64(n - passed)
	return f
}
