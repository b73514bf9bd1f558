// SPDX-License-Identifier: Apache-2.0

package published

import (
	"context"
	"fmt"

	"github.com/drayage/dray/internal/host"
	watch "github.com/drayage/dray/internal/measure/live"
	"github.com/drayage/dray/internal/measure/verify"
	"github.com/drayage/dray/internal/node"
	"github.com/drayage/dray/internal/plan"
	"github.com/drayage/dray/internal/result/record"
	"github.com/drayage/dray/internal/result/verdict"
)

// judgeLink judges the requirements of one link, by instruments or, if it is held, by the traffic of the functions that
// hold it. The figure is 1 if every requirement is met.
func judgeLink(ctx context.Context, r *Runner, live *node.Live, l plan.Link, held []string, t *record.Trial, figure string) error {
	alone := *live.State.Plan
	alone.Links = []plan.Link{l}
	trials, err := verify.Links(ctx, verify.Input{
		Plan: &alone, Sandboxes: live.State.Sandboxes, Device: live.Device, Live: watch.Of(live),
		Options: verify.Options{Profile: verify.Quick, Seed: r.Run.Seed, Held: held},
		Run:     r.Run.ID, Env: func() record.Environment { return r.Env(live) }, OtherRuns: host.OtherMeasurements,
	})
	if err != nil {
		return err
	}
	for _, found := range verdict.Judge(verdict.OfRun(l, trials), trials) {
		t.Raw += fmt.Sprintf("%s: %s, measured %s: %s\n", found.Requirement, found.Verdict, found.Measured, found.Reason)
		addVerdict(t.Experiment, figure, found)
	}
	return nil
}

// addVerdict adds a requirement's verdict to a figure.
func addVerdict(e *record.Experiment, figure string, found verdict.Verdict) {
	met, judged := e.Values[figure]
	switch {
	case found.Verdict == verdict.Missed:
		e.Values[figure] = 0
	case judged && met == 0: // stays missed, whatever else is not known
	case found.Verdict != verdict.Met:
		delete(e.Values, figure)
		e.Why[figure] = found.Requirement + ": " + found.Reason
	case e.Why[figure] == "" && (!judged || met == 1):
		e.Values[figure] = 1
	}
}
