// SPDX-License-Identifier: Apache-2.0

package runtime

import "maps"

// Terminal is that of whoever calls Exec, which is in raw mode: the program gets a
// terminal like it.
type Terminal struct {
	Name    string // TERM, such as "xterm"
	Size    Size
	Resized <-chan Size // its later sizes; nil: it keeps its size
}

// Size is a terminal's, in characters.
type Size struct{ Columns, Rows uint16 }

// TerminalGiver is implemented by a runtime that heeds Stdio.Terminal.
type TerminalGiver interface {
	GivesTerminals()
}

// InTerminal is the function with a program in a terminal, or as it is without one.
func (s Spec) InTerminal(t *Terminal) Spec {
	if t == nil || t.Name == "" {
		return s
	}
	env := maps.Clone(s.Function.Env)
	if env == nil {
		env = map[string]string{}
	}
	env["TERM"] = t.Name
	s.Function.Env = env
	return s
}
