// SPDX-License-Identifier: Apache-2.0

package verdict

import (
	"fmt"
	"slices"

	"github.com/drayage/dray/internal/result/record"
	"github.com/drayage/dray/internal/spec/units"
)

// excuse withdraws a miss that rests on trials whose sender was later than the budget
// in more packets than may exceed it. The link's delay does not include that lateness.
// But a CPU shortage of that length also delays the receiver, and that wait looks like
// the link's. Packets that never arrived are lost in any case.
func (d delay) excuse(level float64, f Finding, s sample) Finding {
	if f.Verdict != Missed || f.Bound.Value == nil {
		return f
	}
	var punctual sample
	for i, t := range s.trials {
		if !d.lateSender(t) {
			punctual.add(sample{s.trials[i : i+1], s.sure[i : i+1], s.careful[i : i+1]})
		}
	}
	late := len(s.trials) - len(punctual.trials)
	if late == 0 {
		return f
	}
	if len(punctual.trials) >= MinTrials && d.decide(level, newFinding(punctual.trials, nil), punctual).Verdict == Missed {
		return f
	}
	f.Verdict, f.Bound = NotMeasurable, none()
	f.Reason = fmt.Sprintf("in %d of %s the sender itself was over %s late for more than %s of the packets: the machine was busy, and the link is not at fault",
		late, plural(len(s.trials), "trial"), units.Duration(d.budget), share((100-d.pct)/100))
	f.Needs = "an idle machine: stop other programs and measure again"
	return f
}

// lateSender reports whether the trial is marked for its generator, whose own lateness
// exceeded the budget. If the port may have made it wait as long, that is the port's
// fault.
func (d delay) lateSender(t record.Trial) bool {
	held := t.OneWay.Held > 0 && (t.OneWay.HeldFor == 0 || int64(t.OneWay.HeldFor) > d.budget)
	if held || !slices.Contains(t.Marks, record.MarkLate) {
		return false
	}
	var late, all float64
	for _, c := range t.OneWay.Lateness.Counts {
		all += float64(c.Count)
		if c.Value > d.budget {
			late += float64(c.Count)
		}
	}
	return late > all*(100-d.pct)/100
}
