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

// moduleIndex is what modules.dep tells: which files must be loaded before one.
type moduleIndex struct {
	needs map[string][]string // file → files, as modules.dep lists them
	files map[string]string   // module's name → file
}

// moduleName is the name of the module in a file: the kernel takes - for _.
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

// order lists the files of the named modules and of all that they need, each
// after what it needs. A name without a file is built into the kernel if
// builtin has it.
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
		// modules.dep lists what is to be loaded first last.
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
