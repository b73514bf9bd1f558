// SPDX-License-Identifier: Apache-2.0

package verdict

import (
	"fmt"
	"slices"

	"github.com/drayage/dray/internal/result/record"
)

// MinTrials is the minimum number of trials for any inference: fewer say nothing about
// variation between trials.
const MinTrials = 3

// rule judges one kind of requirement.
type rule struct {
	requirement string
	required    Figure
	method      string
	quantity    record.Quantity
	judge       func(level float64, trials []record.Trial) Finding
}

// Judge decides, from the trials on a link, whether each requirement was met. Warm-ups
// and cross-checks never count. A trial with a result is a measurement even if it ended
// in an error, because nothing arriving is a result. A trial with an error and no
// result is an instrument failure, and no evidence, unless others prove that nothing
// passes at all (see fillSilence).
func Judge(l Link, trials []record.Trial) []Verdict {
	mine := ofLink(l, trials)
	var verdicts []Verdict
	for _, r := range rules(l, trials) {
		verdicts = append(verdicts, r.verdict(l, mine))
	}
	return verdicts
}

// ofLink is the trials that are evidence for a link.
func ofLink(l Link, trials []record.Trial) []record.Trial {
	var mine []record.Trial
	for _, t := range trials {
		if t.Link == l.Name && !t.Warmup && (t.Passive || !l.passive) {
			mine = append(mine, t)
		}
	}
	return fillSilence(l, mine)
}

// ExitCode is the exit code of a program with these verdicts: 0 all met, 4 one or more
// missed, 5 none missed but some not measurable.
func ExitCode(verdicts []Verdict) int {
	code := 0
	for _, v := range verdicts {
		switch v.Verdict {
		case Met:
		case Missed:
			return 4
		default:
			code = 5
		}
	}
	return code
}

// verdict judges every direction; the worst decides.
func (r rule) verdict(l Link, trials []record.Trial) Verdict {
	var findings []Finding
	for _, d := range l.Directions {
		forth := r.of(trials, d)
		if len(forth) == 0 {
			findings = append(findings, notMeasurable(d.String(), "there is no trial in this direction",
				fmt.Sprintf("at least %d trials of %s from %s to %s", MinTrials, r.quantity, d.From, d.To)))
			continue
		}
		if l.passive && idle(forth) {
			findings = append(findings, nothingSent(d))
			continue
		}
		f := r.atLooks(forth)
		f.Direction, f.Basis = d.String(), r.basis(l, forth)
		findings = append(findings, f)
	}
	for _, u := range l.Uplinks {
		findings = append(findings, notMeasurable(u, "no instrument runs on the far side of a host interface",
			"an instrument on the far side of "+u))
	}
	if len(findings) == 0 {
		findings = append(findings, notMeasurable("–", "the link has no two ports to measure between", "a second port on the link"))
	}
	for i := range findings {
		findings[i].Required = r.required
	}
	return r.summary(l, findings)
}

func (r rule) of(trials []record.Trial, d Direction) []record.Trial {
	var out []record.Trial
	for _, t := range trials {
		if t.Quantity == r.quantity && t.From == d.From && t.To == d.To && !t.CrossCheck {
			out = append(out, t)
		}
	}
	return out
}

func (r rule) summary(l Link, findings []Finding) Verdict {
	worst := slices.MaxFunc(findings, func(a, b Finding) int {
		if d := severity(a.Verdict) - severity(b.Verdict); d != 0 {
			return d
		}
		switch {
		case a.badness < b.badness:
			return -1
		case a.badness > b.badness:
			return 1
		}
		return 0
	})
	v := Verdict{
		Link: l.Name, Path: l.Path, Requirement: r.requirement, Required: r.required, Method: r.method,
		Measured: worst.Measured, Bound: worst.Bound, Basis: worst.Basis, Direction: worst.Direction,
		Verdict: worst.Verdict, Reason: worst.Reason, Needs: worst.Needs,
		Trials: []string{}, Marks: []string{}, Directions: findings,
	}
	for _, f := range findings {
		v.Trials = append(v.Trials, f.Trials...)
		v.Marks = append(v.Marks, f.marks...)
	}
	slices.Sort(v.Marks)
	v.Marks = slices.Compact(v.Marks)
	return v
}

func severity(w Word) int {
	switch w {
	case Met:
		return 0
	case Missed:
		return 2
	}
	return 1
}

func notMeasurable(direction, reason, needs string) Finding {
	return Finding{Direction: direction, Verdict: NotMeasurable, Measured: none(), Bound: none(), Reason: reason, Needs: needs, Trials: []string{}}
}

// newFinding starts a finding from the trials used, and names the trials that are no
// evidence.
func newFinding(used []record.Trial, rejected []string) Finding {
	f := Finding{Verdict: NotMeasurable, Measured: none(), Bound: none(), Trials: []string{}, Rejected: rejected}
	for _, t := range used {
		f.Trials = append(f.Trials, t.ID)
		f.marks = append(f.marks, t.Marks...)
	}
	return f
}

// tooFewTrials completes a finding that has fewer than MinTrials.
func tooFewTrials(f Finding) Finding {
	f.Reason = fmt.Sprintf("%s, but at least %d are needed to see how trials differ", plural(len(f.Trials), "usable trial"), MinTrials)
	if n := len(f.Rejected); n > 0 {
		f.Reason += fmt.Sprintf(" (%s rejected, the first: %s)", plural(n, "trial"), f.Rejected[0])
	}
	f.Needs = fmt.Sprintf("%s more of this kind", plural(MinTrials-len(f.Trials), "trial"))
	f.more = unclear
	return f
}
