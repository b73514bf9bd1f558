// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"strings"
)

// Infeasible is the error of a chain that this host cannot satisfy.
type Infeasible struct {
	Plan *Plan // as far as it could be made, with its Violations
}

// Error names every violation, one a line.
func (e *Infeasible) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "chain %s is infeasible on %s", e.Plan.Chain, e.Plan.Host)
	for _, v := range e.Plan.Violations {
		b.WriteString("\n  ")
		if v.Position != "" {
			b.WriteString(v.Position + ": ")
		}
		b.WriteString(v.String())
	}
	return b.String()
}

// String is one line: subject, constraint, reason and fix.
func (v Violation) String() string {
	s := fmt.Sprintf("%s: %s: %s", v.Subject, v.Constraint, v.Reason)
	if v.Fix != "" {
		s += "; " + v.Fix
	}
	return s
}
