// SPDX-License-Identifier: Apache-2.0

package published

import (
	"fmt"
	"time"

	"github.com/drayage/dray/internal/measure/runner"
	"github.com/drayage/dray/internal/result/report"
	"github.com/drayage/dray/internal/spec/experiment"
	"github.com/drayage/dray/internal/spec/inventory"
)

// quickAtMost is the quick profile's time limit, whatever it contains.
const quickAtMost = 41 * time.Minute

// NewRun is an experiments run that has not begun. A seed of 0 means a random one.
func NewRun(list []experiment.Experiment, profile Profile, inv *inventory.Inventory, by report.Program, seed uint64) *report.ExperimentsRun {
	now, name := time.Now(), "experiments"
	if len(list) == 1 {
		name = list[0].Name
	}
	run := &report.ExperimentsRun{
		Schema: report.ExperimentsSchema, ID: fmt.Sprintf("%s-%s", name, now.UTC().Format("20060102T150405.000")),
		Profile: profile.Name, Rounds: profile.Rounds, Trial: profile.Trial, Experiments: list, Started: now, Seed: runner.Seed(seed),
		Program: by, Host: inv.Host,
	}
	if profile.Name == Quick {
		run.AtMost = quickAtMost
	}
	return run
}

// HowMeasured is how a row is measured, or why it is not.
func HowMeasured(run *report.ExperimentsRun, r experiment.Row) string {
	c := r.Cell.String()
	switch {
	case r.NotRun != "":
		return "not run here: " + report.Plain(r.NotRun)
	case run.Skipped[c] != "":
		return "not run here: " + report.Plain(run.Skipped[c])
	case Unanswered(run.Host, r) != "":
		return "not run here: " + Unanswered(run.Host, r)
	case run.Lab[c] != "":
		return fmt.Sprintf("%s, in a lab guest, kernel %s, %s", c, run.Lab[c], rounds(run.LabRounds))
	}
	return c
}

// Planned counts the rows of a run: all, those measured in a lab guest, and those not
// measured.
func Planned(run *report.ExperimentsRun) (rows, inGuest, notRun int) {
	for _, e := range run.Experiments {
		for _, r := range e.Rows {
			rows++
			c := r.Cell.String()
			switch {
			case r.NotRun != "" || run.Skipped[c] != "" || Unanswered(run.Host, r) != "":
				notRun++
			case run.Lab[c] != "":
				inGuest++
			}
		}
	}
	return rows, inGuest, notRun
}

func rounds(n int) string {
	if n == 1 {
		return "1 round"
	}
	return fmt.Sprintf("%d rounds", n)
}
