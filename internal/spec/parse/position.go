// SPDX-License-Identifier: Apache-2.0

package parse

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/drayage/dray/internal/spec/layout"
)

// Position is the position of a value in a file. Line and Column count from 1, columns
// in characters; a zero Position is unknown.
type Position struct {
	File   string
	Line   int
	Column int
}

// String is "file:line:column", or "file" if the line is unknown.
func (p Position) String() string {
	if p.Line == 0 {
		return p.File
	}
	return fmt.Sprintf("%s:%d:%d", p.File, p.Line, p.Column)
}

// Error is one fault in a file: position, cause and fix.
type Error struct {
	Pos  Position
	Text string // what is wrong
	Fix  string // what to write instead
	In   string // the enclosing part of the file, such as "function du", or ""
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

// Errors is every fault of one file, by position. It is never empty.
type Errors []*Error

// Error writes one line per fault, grouped by the parts of the file, and counts the
// omitted ones.
func (e Errors) Error() string {
	items := make([]layout.Item, len(e))
	for i, fault := range e {
		items[i] = layout.Item{Group: fault.In, Text: fault.Error()}
	}
	return strings.Join(layout.Groups(items), "\n")
}

// Unwrap lets errors.As find an *Error.
func (e Errors) Unwrap() []error {
	errs := make([]error, len(e))
	for i, fault := range e {
		errs[i] = fault
	}
	return errs
}

// sortErrors orders by position and drops duplicates, which arise if an alias makes one
// piece of text count twice.
func sortErrors(errs Errors) Errors {
	slices.SortStableFunc(errs, func(a, b *Error) int {
		return cmp.Or(cmp.Compare(a.Pos.Line, b.Pos.Line), cmp.Compare(a.Pos.Column, b.Pos.Column))
	})
	return slices.CompactFunc(errs, func(a, b *Error) bool { return *a == *b })
}

// maxQuoted limits how much of a file's text an error repeats, in characters.
const maxQuoted = 40

// Quote formats text for errors: on one line, and never long.
func Quote(text string) string {
	if runes := []rune(text); len(runes) > maxQuoted {
		text = string(runes[:maxQuoted]) + "…"
	}
	return strconv.Quote(text)
}
