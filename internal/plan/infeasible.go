// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"strings"

	"github.com/drayage/dray/internal/spec/layout"
)

// Infeasible is the error for a chain that this host cannot satisfy.
type Infeasible struct {
	Plan *Plan // as far as it could be made, with its Violations
}

// Error lists the violations, one a line, grouped by subject.
func (e *Infeasible) Error() string {
	var items []layout.Item
	count := map[string]int{}
	for _, v := range e.Plan.Violations {
		count[v.Subject]++
	}
	for _, v := range e.Plan.Violations {
		text := v.String()
		if count[v.Subject] > 1 {
			text = strings.TrimPrefix(text, v.Subject+": ")
		}
		if v.Position != "" {
			text = v.Position + ": " + text
		}
		items = append(items, layout.Item{Group: v.Subject, Text: text})
	}
	head := fmt.Sprintf("chain %s is infeasible on %s", e.Plan.Chain, e.Plan.Host)
	return strings.Join(append([]string{head}, layout.Groups(items)...), "\n  ")
}

// Simulable is the error of a plan for hosts that this machine cannot simulate, an
// *Infeasible.
func (p *Plan) Simulable() error {
	if len(p.Unsimulated) == 0 {
		return nil
	}
	refused := *p
	refused.Violations = p.Unsimulated
	return &Infeasible{Plan: &refused}
}

// String is one line: subject, constraint, reason and fix.
func (v Violation) String() string {
	s := fmt.Sprintf("%s: %s: %s", v.Subject, v.Constraint, v.Reason)
	if v.Fix != "" {
		s += "; " + v.Fix
	}
	return s
}
