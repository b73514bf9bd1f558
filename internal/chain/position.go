// SPDX-License-Identifier: Apache-2.0

package chain

import "fmt"

// Position is where in a chain file a value stands. Line and Column count from
// 1; a zero Position is unknown.
type Position struct {
	File   string
	Line   int
	Column int
}

// String is "file:line:column", or "file" where the line is unknown.
func (p Position) String() string {
	if p.Line == 0 {
		return p.File
	}
	return fmt.Sprintf("%s:%d:%d", p.File, p.Line, p.Column)
}

// Error is one fault in a chain file: where, what, and how to mend it.
type Error struct {
	Pos  Position
	Text string // what is wrong
	Fix  string // what to write instead
}

func (e *Error) Error() string {
	s := e.Text
	if e.Fix != "" {
		s += "; " + e.Fix
	}
	if p := e.Pos.String(); p != "" {
		s = p + ": " + s
	}
	return s
}
