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
	return s.With(map[string]string{"TERM": t.Name})
}

// With is the function for a program with more variables in its environment.
func (s Spec) With(variables map[string]string) Spec {
	env := map[string]string{}
	maps.Copy(env, s.Function.Env)
	maps.Copy(env, variables)
	s.Function.Env = env
	return s
}
