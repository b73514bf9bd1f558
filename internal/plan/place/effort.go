// SPDX-License-Identifier: Apache-2.0

package place

// Effort bounds several searches together: those that explain why there is no placement. It
// counts what they look at, so that the answer is the same on every machine.
type Effort struct{ left int }

// NewEffort is enough for some seconds.
func NewEffort() *Effort { return &Effort{2 * mostLooks} }

// Spent reports whether nothing is left: then the last answer, and each later one, may be wrong.
func (e *Effort) Spent() bool { return e.left <= 0 }

// Possible reports whether the model has a placement. For a large model, or if the effort is
// spent, false says only that none was found.
func (e *Effort) Possible(m *Model) bool {
	if e.Spent() || hopeless(m) {
		return false
	}
	if !small(m) {
		return construct(m) != nil
	}
	q := &search{state: newState(m), first: true, steps: exactSteps, most: min(e.left, mostLooks), twins: twins(m)}
	q.branch()
	e.left -= q.looks
	return q.best != nil
}
