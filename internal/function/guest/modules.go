// SPDX-License-Identifier: Apache-2.0

package guest

import (
	"bufio"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"
)

// moduleIndex is the content of modules.dep: each file's dependencies.
type moduleIndex struct {
	needs map[string][]string // file → files, as modules.dep lists them
	files map[string]string   // module's name → file
}

// moduleName is the module name of a file: the kernel treats - as _.
func moduleName(file string) string {
	name, _, _ := strings.Cut(path.Base(file), ".ko")
	return strings.ReplaceAll(name, "-", "_")
}

// parseModules reads a modules.dep (depmod(8)).
func parseModules(r io.Reader) (moduleIndex, error) {
	m := moduleIndex{needs: map[string][]string{}, files: map[string]string{}}
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		file, needs, ok := strings.Cut(lines.Text(), ":")
		if !ok {
			return m, fmt.Errorf("modules.dep: %q is not \"file: files\"", lines.Text())
		}
		m.needs[file] = strings.Fields(needs)
		m.files[moduleName(file)] = file
	}
	return m, lines.Err()
}

// order lists the files of the named modules and their dependencies, each after
// its dependencies. A name without a file is built in if builtin has it.
func (m moduleIndex) order(names []string, builtin map[string]bool) ([]string, error) {
	var list []string
	for _, name := range names {
		name = strings.ReplaceAll(name, "-", "_")
		file, ok := m.files[name]
		if !ok && builtin[name] {
			continue
		}
		if !ok {
			return nil, fmt.Errorf("the kernel has no module %s", name)
		}
		// modules.dep lists the first file to load last.
		for _, f := range slices.Backward(append([]string{file}, m.needs[file]...)) {
			if !slices.Contains(list, f) {
				list = append(list, f)
			}
		}
	}
	return list, nil
}

// parseBuiltin reads a modules.builtin.
func parseBuiltin(text string) map[string]bool {
	names := map[string]bool{}
	for _, file := range strings.Fields(text) {
		names[moduleName(file)] = true
	}
	return names
}
