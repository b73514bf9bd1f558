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
	kind, err := c.kinds()
	if err != nil {
		return nil, err
	}
	measured := map[string]Link{}
	for _, l := range slices.Backward(as.Status.Links) { // the first remains
		if l.Runs() {
			measured[kind(l)] = l
		}
	}
	var all []Link
	for _, l := range c.Status.Links {
		if !l.Runs() {
			all = append(all, l)
			continue
		}
		same := measured[kind(l)]
		l.Requirements = l.judged(verdictsOn(same.Name, verdicts))
		if len(same.Ends) > 0 {
			l.Ends, l.Transport = same.Ends, same.Transport
		}
		all = append(all, l)
	}
	return all, nil
}

// verdictsOn are those on a link.
func verdictsOn(link string, all []verdict.Verdict) (some []verdict.Verdict) {
	for _, v := range all {
		if v.Link == link {
			some = append(some, v)
		}
	}
	return some
}

// kinds returns what is equal for links that are made in the same way: what the chain file calls the link, and the
// nodes of its ends.
func (c *Chain) kinds() (func(Link) string, error) {
	own, err := manifest.Parse(c.Metadata.Name, c.Spec)
	if err != nil {
		return nil, err
	}
	return func(l Link) string {
		name, nodes := l.Name, []string{}
		for _, e := range l.Ends {
			if f := own.Function(e.Function); f != nil && f.Of != "" {
				name = f.Of + "." + e.Port
			}
			nodes = append(nodes, e.Node)
		}
		return name + " " + strings.Join(nodes, " ")
	}, nil
}

// judged are the requirements of a link by the verdicts on its copy.
func (l *Link) judged(measured []verdict.Verdict) []Condition {
	var all []Condition
	seen := l.seen(measured)
	for _, v := range measured {
		q := find(seen, v.Requirement)
		if q.Status == "" {
			q = conditionOf(v)
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

// seen are the requirements of a link on which the nodes' verdicts take the place of those on its copy: a delay
// between nodes that is left undecided, since only the nodes compare their clocks. They see the applications' traffic.
func (l *Link) seen(measured []verdict.Verdict) (some []Condition) {
	for _, v := range measured {
		q := find(l.Requirements, v.Requirement)
		if v.Verdict == verdict.NotMeasurable && q.Status != "" && l.crosses() && verdict.IsDelay(v.Requirement) {
			some = append(some, q)
		}
	}
	return some
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
