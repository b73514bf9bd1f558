// SPDX-License-Identifier: Apache-2.0

// Package depcheck checks that dependencies point one way: which package of
// this module may import which other, which modules, and which system calls.
package depcheck

import (
	"fmt"
	"slices"
	"strings"
)

// Package is one package of the module, as the check sees it.
type Package struct {
	Path    string   // within the module: "internal/chain"
	Imports []string // import paths of its files, tests apart
	Calls   []Call   // functions of system-call packages that its files use
}

// Call is a use of a function of another package.
type Call struct {
	Function string // "unix.Mount"
	Position string // file:line
}

// Layer says what the packages that match Pattern may import of this module.
type Layer struct {
	Pattern string   // a path; with "/...", also everything below it
	May     []string // patterns of the packages that it may import
}

// Guard names the only packages that may use a module or a system call.
type Guard struct {
	Subject string   // import path (and below), or "unix.Mount"
	Only    []string // patterns
	Why     string
}

// Rules is what Check enforces.
type Rules struct {
	Module  string // path of this module
	Layers  []Layer
	Imports []Guard
	Calls   []Guard
}

// Check returns one sentence for each import or call that breaks a rule.
func (r Rules) Check(pkgs []Package) []string {
	var broken []string
	for _, p := range pkgs {
		layer, ok := r.layer(p.Path)
		if !ok {
			broken = append(broken, fmt.Sprintf("%s has no layer: add it to the table in internal/depcheck/rules.go", p.Path))
			continue
		}
		for _, path := range p.Imports {
			broken = append(broken, r.checkImport(p, layer, path)...)
		}
		for _, c := range p.Calls {
			if g, ok := guardOf(r.Calls, c.Function); ok && !matchAny(g.Only, p.Path) {
				broken = append(broken, fmt.Sprintf("%s: %s uses %s, which only %s may: %s",
					c.Position, p.Path, c.Function, strings.Join(g.Only, ", "), g.Why))
			}
		}
	}
	return broken
}

func (r Rules) checkImport(p Package, layer Layer, path string) []string {
	if inside, ok := strings.CutPrefix(path, r.Module+"/"); ok {
		if matchAny(layer.May, inside) {
			return nil
		}
		return []string{fmt.Sprintf("%s imports %s; it may import %s of this module",
			p.Path, inside, orNothing(layer.May))}
	}
	if isStandard(path) && path != "syscall" {
		return nil
	}
	g, ok := guardOf(r.Imports, path)
	if !ok {
		return []string{fmt.Sprintf("%s imports %s, which is in no rule: say in internal/depcheck/rules.go who may", p.Path, path)}
	}
	if !matchAny(g.Only, p.Path) {
		return []string{fmt.Sprintf("%s imports %s, which only %s may: %s", p.Path, path, strings.Join(g.Only, ", "), g.Why)}
	}
	return nil
}

// layer is the one whose pattern says the most about the path: the exact one,
// else the longest.
func (r Rules) layer(path string) (Layer, bool) {
	var best Layer
	for _, l := range r.Layers {
		if l.Pattern == path {
			return l, true
		}
		if match(l.Pattern, path) && len(l.Pattern) > len(best.Pattern) {
			best = l
		}
	}
	return best, best.Pattern != ""
}

// guardOf is the guard with the longest subject that covers the name.
func guardOf(guards []Guard, name string) (Guard, bool) {
	var best Guard
	for _, g := range guards {
		if match(g.Subject+"/...", name) && len(g.Subject) > len(best.Subject) {
			best = g
		}
	}
	return best, best.Subject != ""
}

func match(pattern, path string) bool {
	base, tree := strings.CutSuffix(pattern, "/...")
	return path == base || tree && strings.HasPrefix(path, base+"/")
}

func matchAny(patterns []string, path string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool { return match(p, path) })
}

// isStandard tells the standard library by its lack of a domain name.
func isStandard(path string) bool {
	first, _, _ := strings.Cut(path, "/")
	return !strings.Contains(first, ".")
}

func orNothing(patterns []string) string {
	if len(patterns) == 0 {
		return "nothing"
	}
	return "only " + strings.Join(patterns, ", ")
}
