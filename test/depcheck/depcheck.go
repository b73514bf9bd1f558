// SPDX-License-Identifier: Apache-2.0

// Package depcheck checks that dependencies point one way: which packages of this
// module, which modules, and which system calls a package may use.
package depcheck

import (
	"fmt"
	"slices"
	"strings"
)

// Package is one package of the module, as the check sees it.
type Package struct {
	Path    string   // within the module: "internal/spec/chain"
	Imports []string // import paths of its files, without tests
	Calls   []Call   // functions of system-call packages used in its files
	Lines   int      // of its files, without tests
}

// Call is a use of a function of another package.
type Call struct {
	Function string // "unix.Mount"
	Position string // file:line
}

// Room is a group of packages in one directory.
type Room struct {
	Path string
	// On names the rooms that its packages may import, along with everything that
	// those may import.
	On []string
	// Floors order the packages inside: each may import packages on floors before its
	// own. "." is the room's own package, "*" is every package that no floor names. A
	// room without floors is a single floor.
	Floors [][]string
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
	Rooms   []Room
	Imports []Guard
	Calls   []Guard
	// ForTests are packages that only tests, and the packages in TestOnly, may import
	// from a room above.
	ForTests, TestOnly []string
}

// Check returns one sentence for each import or call that breaks a rule.
func (r Rules) Check(pkgs []Package) []string {
	broken := r.cycles()
	if broken != nil {
		return broken
	}
	for _, p := range pkgs {
		room, ok := r.room(p.Path)
		if !ok {
			broken = append(broken, p.Path+" is in no room: move it into one, or add its room to test/depcheck/rules.go")
			continue
		}
		for _, path := range p.Imports {
			if inside, ok := strings.CutPrefix(path, r.Module+"/"); ok {
				broken = append(broken, r.checkRoom(p.Path, room, inside)...)
			} else {
				broken = append(broken, r.checkModule(p, path)...)
			}
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

// checkRoom judges an import of another package of this module.
func (r Rules) checkRoom(from string, room Room, to string) []string {
	if matchAny(r.ForTests, to) && matchAny(r.TestOnly, from) {
		return nil
	}
	below, ok := r.room(to)
	switch {
	case !ok:
		return []string{fmt.Sprintf("%s imports %s, which is in no room", from, to)}
	case below.Path == room.Path:
		if room.floor(to) < room.floor(from) || room.Floors == nil {
			return nil
		}
		return []string{fmt.Sprintf("%s imports %s, which is not on a floor below it in %s", from, to, room.Path)}
	case slices.Contains(r.Reach(room.Path), below.Path):
		return nil
	}
	return []string{fmt.Sprintf("%s imports %s; room %s may import %s", from, to, room.Path, orNothing(r.Reach(room.Path)))}
}

// checkModule judges an import from outside this module.
func (r Rules) checkModule(p Package, path string) []string {
	if isStandard(path) && path != "syscall" {
		return nil
	}
	g, ok := guardOf(r.Imports, path)
	if !ok {
		return []string{fmt.Sprintf("%s imports %s, which is in no rule: say in test/depcheck/rules.go who may", p.Path, path)}
	}
	if !matchAny(g.Only, p.Path) {
		return []string{fmt.Sprintf("%s imports %s, which only %s may: %s", p.Path, path, strings.Join(g.Only, ", "), g.Why)}
	}
	return nil
}

// room is the room whose directory holds the package.
func (r Rules) room(path string) (Room, bool) {
	for _, room := range r.Rooms {
		if match(room.Path+"/...", path) {
			return room, true
		}
	}
	return Room{}, false
}

// floor is the number of a package's floor in its room.
func (room Room) floor(path string) int {
	name := strings.TrimPrefix(strings.TrimPrefix(path, room.Path), "/")
	if name == "" {
		name = "."
	}
	others := 0
	for i, names := range room.Floors {
		switch {
		case slices.Contains(names, name):
			return i
		case slices.Contains(names, "*"):
			others = i
		}
	}
	return others
}

// Reach lists the rooms that a room may import, directly or through another.
func (r Rules) Reach(path string) []string {
	var reach []string
	for _, room := range r.Rooms {
		if room.Path != path {
			continue
		}
		for _, on := range room.On {
			for _, below := range append([]string{on}, r.Reach(on)...) {
				if !slices.Contains(reach, below) {
					reach = append(reach, below)
				}
			}
		}
	}
	return reach
}

// cycles reports the rooms that import one not listed before them. It makes Reach
// end.
func (r Rules) cycles() []string {
	var broken []string
	for i, room := range r.Rooms {
		for _, on := range room.On {
			at := slices.IndexFunc(r.Rooms, func(other Room) bool { return other.Path == on })
			if at < 0 || at >= i {
				broken = append(broken, fmt.Sprintf("room %s stands on %s, which is not listed before it", room.Path, on))
			}
		}
	}
	return broken
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

// isStandard recognises the standard library by its lack of a domain name.
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
