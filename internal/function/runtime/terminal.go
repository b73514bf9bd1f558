// SPDX-License-Identifier: Apache-2.0

package runtime

import "maps"

// Terminal is the terminal of Exec's caller, in raw mode: the program gets one
// like it.
type Terminal struct {
	Name    string // TERM, such as "xterm"
	Size    Size
	Resized <-chan Size // its later sizes; nil: it keeps its size
}

// Size is a terminal's size, in characters.
type Size struct{ Columns, Rows uint16 }

// TerminalGiver is implemented by a runtime that uses Stdio.Terminal.
type TerminalGiver interface {
	GivesTerminals()
}

// InTerminal is the function for a program in a terminal, or unchanged without one.
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
