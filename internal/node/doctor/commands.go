// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/drayage/dray/internal/function/runtime"
	"github.com/drayage/dray/internal/host"
	"github.com/drayage/dray/internal/plan"
	"github.com/drayage/dray/internal/spec/chain"
)

// CheckCommands looks up the program of every function's command in the function's
// own root, like its runtime. A missing program is a hard violation: otherwise it
// would show only after minutes of measuring. It does not look into images; a note
// says so.
func CheckCommands(c *chain.Chain) (violations []plan.Violation, notes []string) {
	for i := range c.Functions {
		f := &c.Functions[i]
		switch {
		case len(f.Command) == 0 || f.Runtime == chain.RuntimeExternal:
		case f.Runtime == chain.RuntimeDocker:
			notes = append(notes, fmt.Sprintf("function %s: cannot check before the start whether image %s has the program %q", f.Name, f.Image, f.Command[0]))
		default:
			if reason := unresolved(f); reason != "" {
				pos := cmp.Or(f.FieldPos["command"], f.Pos)
				violations = append(violations, plan.Violation{
					Subject: "function " + f.Name, Constraint: fmt.Sprintf("command %q", f.Command[0]), Reason: reason,
					Fix: "correct the name, install the program, or give its absolute path", Pos: pos, Position: pos.String(), Hard: true,
				})
			}
		}
	}
	return violations, notes
}

// unresolved says why the function's program cannot be executed; empty if it can.
func unresolved(f *chain.Function) string {
	root := cmp.Or(f.Rootfs, "/")
	name := f.Command[0]
	if strings.Contains(name, "/") {
		found, err := executable(root, name)
		switch {
		case err != nil:
			return fmt.Sprintf("%s cannot be looked into: %v", rootName(f), err)
		case !found:
			return fmt.Sprintf("%s has no such program", rootName(f))
		}
		return ""
	}
	spec := runtime.Spec{Function: *f}
	own := func(file string) bool { return filepath.Base(file) == name }
	if f.Env["PATH"] == "" && slices.ContainsFunc(spec.Programs(), own) {
		return ""
	}
	path := searchPath(spec)
	for _, dir := range filepath.SplitList(path) {
		found, err := executable(root, filepath.Join(dir, name))
		switch {
		case err != nil:
			return fmt.Sprintf("%s cannot be looked into: %v", rootName(f), err)
		case found:
			return ""
		}
	}
	return fmt.Sprintf("%s has no such program in the function's PATH, %s", rootName(f), path)
}

func rootName(f *chain.Function) string {
	if f.Rootfs != "" {
		return "the root file system " + f.Rootfs
	}
	return "this host"
}

func searchPath(spec runtime.Spec) string {
	for _, variable := range spec.Environ() {
		if path, ok := strings.CutPrefix(variable, "PATH="); ok {
			return path
		}
	}
	return ""
}

// executable reports whether a path below the root is a program. Symbolic links, also
// those of directories, are followed within the root. It is an error if that cannot be
// found out.
func executable(root, path string) (bool, error) {
	info, err := host.StatIn(root, path)
	if host.IsLimit(err) {
		return false, host.FaultOf(err)
	}
	return err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0, nil
}
