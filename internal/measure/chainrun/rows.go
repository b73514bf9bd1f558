// SPDX-License-Identifier: Apache-2.0

package chainrun

import (
	"fmt"
	"slices"

	"github.com/drayage/dray/internal/link/transport"
	"github.com/drayage/dray/internal/measure/instrument"
	"github.com/drayage/dray/internal/node"
	"github.com/drayage/dray/internal/node/doctor"
	"github.com/drayage/dray/internal/plan"
	"github.com/drayage/dray/internal/result/record"
	"github.com/drayage/dray/internal/result/report"
)

// sharedMark marks trials during which a function's command runs.
func sharedMark(functions []node.FunctionStatus) []string {
	if slices.ContainsFunc(functions, commandRuns) {
		return []string{record.MarkShared}
	}
	return nil
}

func commandRuns(st node.FunctionStatus) bool {
	return st.Phase == node.PhaseRunning || st.Phase == node.PhaseRestarting
}

// ran are the parts of a chain that carried traffic, as keys of doctor.MarkRun.
func ran(live *node.Live) []string {
	var keys []string
	for _, l := range live.State.Plan.Links {
		keys = append(keys, doctor.Transports.Key(l.Transport))
		for _, kind := range kernelQdiscs(l) {
			keys = append(keys, doctor.Qdiscs.Key(kind))
		}
	}
	for _, f := range live.State.Plan.Functions {
		keys = append(keys, doctor.Runtimes.Key(string(f.Runtime)))
	}
	for _, i := range instrument.All() {
		keys = append(keys, doctor.Instruments.Key(i.Name()))
	}
	return keys
}

// kernelQdiscs are the kinds that the kernel has set for a link; none if its ports queue
// in user space.
func kernelQdiscs(l plan.Link) []string {
	kinds := l.Shape.Kinds()
	for _, e := range l.Ends {
		if e.Backend == plan.BackendShm {
			return nil
		}
		kinds = append(kinds, e.Shape.Kinds()...)
	}
	return kinds
}

func (r *Run) functionRows(live *node.Live) []report.Function {
	outcomes := map[string]string{}
	for _, st := range r.Functions {
		outcomes[st.Name] = outcomeText(st)
	}
	var rows []report.Function
	for _, f := range live.State.Plan.Functions {
		rows = append(rows, report.Function{Name: f.Name, Runtime: string(f.Runtime), CPUs: f.CPUs, Outcome: outcomes[f.Name]})
	}
	return rows
}

func outcomeText(st node.FunctionStatus) string {
	switch st.Phase {
	case node.PhaseRunning:
		return "was running"
	case node.PhaseExited, node.PhaseFailed:
		return fmt.Sprintf("exited %d", st.Exit)
	}
	return string(st.Phase)
}

func linkRows(live *node.Live) []report.Link {
	var rows []report.Link
	for _, l := range live.State.Plan.Links {
		row := report.Link{Name: l.Name, Transport: l.Transport, Reason: l.Reason, Addresses: map[string]string{}, Qdiscs: map[string]string{}}
		for _, e := range l.Ends {
			row.Ends = append(row.Ends, e.String())
			if e.IP.IsValid() {
				row.Addresses[e.String()] = e.IP.String()
			}
		}
		if made := live.State.Reports[l.Name]; made != nil {
			row.Engine = made.Engine
			row.Offloads = offloadTexts(made.Offloads)
			for _, q := range made.Qdiscs {
				row.Qdiscs[q.End] = q.Text
			}
		}
		rows = append(rows, row)
	}
	return rows
}

func offloadTexts(changes []transport.OffloadChange) []string {
	var texts []string
	for _, o := range changes {
		state := "off"
		if o.To {
			state = "on"
		}
		texts = append(texts, fmt.Sprintf("%s: %s %s (%s)", o.End, o.Feature, state, o.Reason))
	}
	return texts
}
