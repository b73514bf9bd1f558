// SPDX-License-Identifier: Apache-2.0

package verdict

import (
	"fmt"
	"slices"
	"time"

	"github.com/drayage/dray/internal/plan"
	"github.com/drayage/dray/internal/result/record"
	"github.com/drayage/dray/internal/result/stats"
	"github.com/drayage/dray/internal/spec/parse"
	"github.com/drayage/dray/internal/spec/units"
)

// JudgeCompute decides, from the trials on a function, whether it gets its share of each of
// its CPUs within its deadline; nil: it has no compute.
func JudgeCompute(f plan.Function, trials []record.Trial) []Verdict {
	if f.Compute == nil {
		return nil
	}
	var mine []record.Trial
	for _, t := range trials {
		if t.Function == f.Name && !t.Warmup {
			mine = append(mine, t)
		}
	}
	c := *f.Compute
	share := rule{
		requirement: "share", required: atLeast(float64(c.Share), UnitRatio, c.Percent()), quantity: record.QShare,
		method: "CPU time of a spinning thread by the time that passed; one-sided Student t over trials",
	}
	deadline := rule{
		requirement: "deadline", quantity: record.QShare,
		required: atMost(float64(c.Wait()), UnitTime, fmt.Sprintf("%v without the CPU", units.Duration(c.Wait()))),
		method:   "longest time for which a thread could run and had no CPU, of a spinning thread (dray spin, oslat) and of timers (cyclictest); a longer run may see a longer one",
	}
	return []Verdict{
		share.ofFunction(f, mine, func(used []got, rejected []string) Finding {
			return judgeCPUShare(c.Percent(), float64(c.Share), used, rejected)
		}),
		deadline.ofFunction(f, mine, func(used []got, rejected []string) Finding { return judgeWait(c.Wait(), used, rejected) }),
	}
}

// got is a trial with what it says about one CPU.
type got struct {
	trial record.Trial
	cpu   record.CPU
}

// ofFunction judges each CPU of a function; the worst decides.
func (r rule) ofFunction(f plan.Function, trials []record.Trial, judge func(used []got, rejected []string) Finding) Verdict {
	var findings []Finding
	for _, cpu := range f.CPUs {
		var used []got
		var rejected []string
		for _, t := range trials {
			at := -1
			if t.Compute != nil {
				at = slices.IndexFunc(t.Compute.CPUs, func(c record.CPU) bool { return c.CPU == cpu })
			}
			switch {
			case at >= 0:
				used = append(used, got{t, t.Compute.CPUs[at]})
			case t.Error != "":
				rejected = append(rejected, t.ID+": "+t.Error)
			}
		}
		finding := judge(used, rejected)
		finding.Direction, finding.Basis, finding.Required = fmt.Sprintf("CPU %d", cpu), busyText(used), r.required
		findings = append(findings, finding)
	}
	if len(findings) == 0 {
		findings = append(findings, notMeasurable("–", "the function has no CPU", "a CPU for it"))
	}
	v := r.summary(Link{Name: f.Name}, findings)
	v.Function = true
	return v
}

// busyText names the functions that kept the CPU busy meanwhile.
func busyText(used []got) string {
	var names []string
	for _, g := range used {
		for _, name := range g.trial.Compute.Neighbours {
			if !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	if len(names) == 0 {
		return ""
	}
	return "a busy thread in " + parse.All(names)
}

func trialsOf(used []got) []record.Trial {
	var trials []record.Trial
	for _, g := range used {
		trials = append(trials, g.trial)
	}
	return trials
}

// unmeasured completes a finding of a function that was not measured, or not often enough.
func unmeasured(f Finding) Finding {
	if len(f.Trials) == 0 && len(f.Rejected) == 0 {
		f.Reason, f.Needs = "there is no trial: a function is measured before the commands start", "`dray run`, which measures it then"
		return f
	}
	return tooFewTrials(f)
}

func judgeCPUShare(limit string, floor float64, used []got, rejected []string) Finding {
	used = slices.DeleteFunc(slices.Clone(used), func(g got) bool { return g.cpu.Share == nil })
	r := rate{unit: UnitRatio, format: percentText, limit: limit, rejected: rejected}
	for _, g := range used {
		r.add(g.trial, *g.cpu.Share)
	}
	if len(used) < MinTrials {
		return unmeasured(newFinding(trialsOf(used), rejected))
	}
	f, e, ok := r.estimate(stats.Confidence)
	if !ok {
		return f
	}
	return r.atLeast(f, e, floor)
}

func percentText(v float64) string { return fmt.Sprintf("%.1f%%", 100*v) }

// judgeWait compares the longest wait of all trials. It is no bound: nobody knows the
// longest wait that there can be.
func judgeWait(limit time.Duration, used []got, rejected []string) Finding {
	f := newFinding(trialsOf(used), rejected)
	if len(used) < MinTrials {
		return unmeasured(f)
	}
	worst := slices.MaxFunc(used, func(a, b got) int { return int(a.cpu.Longest - b.cpu.Longest) })
	longest := worst.cpu.Longest
	var watched time.Duration
	for _, g := range used {
		watched += g.trial.Duration
	}
	f.badness = float64(longest)
	f.Measured = figure(float64(longest), UnitTime, FormatDuration(float64(longest)))
	f.Verdict = Met
	if longest > limit {
		f.Verdict = Missed
	}
	f.Reason = fmt.Sprintf("the longest wait in %s was %s, seen by %s", seconds(watched.Seconds()), FormatDuration(float64(longest)), worst.trial.Instrument.Name)
	return f
}
