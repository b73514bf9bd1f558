// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"slices"
	"strings"
	"time"

	"github.com/drayage/dray/internal/result/verdict"
	"github.com/drayage/dray/internal/spec/manifest"
)

// Measured are the links of the chain c with the verdicts on its copy, as is the copy's state. Each link has
// the ends that were measured. Links of instances whose pods are on the same nodes have one measurement.
func (c *Chain) Measured(as *Chain, verdicts []verdict.Verdict) ([]Link, error) {
	own, err := manifest.Parse(c.Metadata.Name, c.Spec)
	if err != nil {
		return nil, err
	}
	declared := map[string]string{}
	for _, f := range own.Functions {
		declared[f.Name] = f.Of
	}
	measured := map[string]Link{}
	for _, l := range slices.Backward(as.Status.Links) { // the first remains
		if l.Runs() {
			measured[l.kind(declared)] = l
		}
	}
	var all []Link
	for _, l := range c.Status.Links {
		if !l.Runs() {
			all = append(all, l)
			continue
		}
		same := measured[l.kind(declared)]
		var of []verdict.Verdict
		for _, v := range verdicts {
			if v.Link == same.Name {
				of = append(of, v)
			}
		}
		l.Requirements = l.judged(of)
		if len(same.Ends) > 0 {
			l.Ends, l.Transport = same.Ends, same.Transport
		}
		all = append(all, l)
	}
	return all, nil
}

// kind is equal for links that are made in the same way: what the chain file calls the link, and the nodes of its
// ends. declared are the names of functions with instances there, by instance.
func (l *Link) kind(declared map[string]string) string {
	name, nodes := l.Name, []string{}
	for _, e := range l.Ends {
		if of := declared[e.Function]; of != "" {
			name = of + "." + e.Port
		}
		nodes = append(nodes, e.Node)
	}
	return name + " " + strings.Join(nodes, " ")
}

// judged are the requirements of a link by the verdicts on its copy. A delay between nodes that is left undecided is
// what the nodes see of the applications' traffic, since only the nodes compare their clocks.
func (l *Link) judged(measured []verdict.Verdict) []Condition {
	var all []Condition
	for _, v := range measured {
		q := conditionOf(v)
		if seen := find(l.Requirements, v.Requirement); v.Verdict == verdict.NotMeasurable && seen.Status != "" && l.crosses() && verdict.IsDelay(v.Requirement) {
			q = seen
		}
		all = append(all, q)
	}
	for _, seen := range l.Requirements {
		if find(all, seen.Type).Status == "" {
			all = append(all, conditionOf(verdict.Verdict{
				Requirement: seen.Type, Required: verdict.Figure{Text: verdict.ReadMessage(seen.Message).Required}, Verdict: verdict.NotMeasurable,
				Reason: "no link like this one was measured, because its pods started or moved meanwhile", Needs: "another run",
			}))
		}
	}
	return all
}

// conditionOf is a verdict as a condition.
func conditionOf(v verdict.Verdict) Condition {
	m := verdict.MessageOf(v)
	if v.Verdict != verdict.Met {
		m.At = v.Direction
	}
	q := Condition{Type: v.Requirement, Message: m.String(), Status: "Unknown", Since: time.Now()}
	switch v.Verdict {
	case verdict.Met:
		q.Status = isTrue
	case verdict.Missed:
		q.Status = isFalse
	}
	return q
}
