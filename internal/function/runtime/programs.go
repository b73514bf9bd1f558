// SPDX-License-Identifier: Apache-2.0

package runtime

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/drayage/dray/internal/host"
	"github.com/drayage/dray/internal/spec/chain"
)

// OwnPrograms are Drayage's programs for functions.
var OwnPrograms = []string{"draygen", "draygen-dpdk", "dray-vnf"}

// programsInside is where a container on the host's root sees them: it may not see the
// directory in which they are.
const programsInside = "/run/dray/bin"

// Programs are the files of Drayage's programs that the function gets in addition to those
// of its root. None if they are installed where each function looks. An image has its own.
func (s Spec) Programs() (files []string) {
	if s.Function.Rootfs != "" || !slices.Contains([]chain.RuntimeName{chain.RuntimeRunc, chain.RuntimeProcess, chain.RuntimeVM}, s.Function.Runtime) {
		return nil
	}
	for _, name := range OwnPrograms {
		file, err := host.OwnProgram(name)
		if err == nil && filepath.IsAbs(file) && !slices.Contains(filepath.SplitList(defaultPath), filepath.Dir(file)) {
			files = append(files, file)
		}
	}
	return files
}

// searchPath is the PATH of a function that sets none.
func (s Spec) searchPath() string {
	dirs := filepath.SplitList(defaultPath)
	for _, file := range s.Programs() {
		dir := filepath.Dir(file)
		if s.Function.Runtime == chain.RuntimeRunc {
			dir = programsInside
		}
		if !slices.Contains(dirs, dir) {
			dirs = append(dirs, dir)
		}
	}
	return strings.Join(dirs, string(filepath.ListSeparator))
}

// programBinds show a container the programs.
func (s Spec) programBinds() (list []Bind) {
	if s.Function.Runtime != chain.RuntimeRunc {
		return nil
	}
	for _, file := range s.Programs() {
		list = append(list, Bind{Source: file, Target: filepath.Join(programsInside, filepath.Base(file))})
	}
	return list
}
