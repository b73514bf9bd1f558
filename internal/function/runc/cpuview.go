// SPDX-License-Identifier: Apache-2.0

package runc

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/drayage/dray/internal/function/runtime"
	"github.com/drayage/dray/internal/host"
	"github.com/drayage/dray/internal/spec/cpulist"
)

const (
	sysCPU  = "/sys/devices/system/cpu"
	sysNode = "/sys/devices/system/node"
)

// cpuView is a copy of the kernel's files about CPUs, reduced to the granted
// CPUs. A cpuset alone does not hide the others: DPDK and libnuma count
// directories.
type cpuView struct {
	dir  string
	cpus []int
}

// overlays lists the copies that prepare made.
func (v cpuView) overlays() ([]runtime.Bind, error) {
	list := []runtime.Bind{
		{Source: filepath.Join(v.dir, "cpuinfo"), Target: "/proc/cpuinfo"},
		{Source: filepath.Join(v.dir, "cpu"), Target: sysCPU},
	}
	nodes, err := filepath.Glob(filepath.Join(v.dir, "node", "*", "*"))
	for _, file := range nodes {
		node := filepath.Base(filepath.Dir(file))
		list = append(list, runtime.Bind{Source: file, Target: filepath.Join(sysNode, node, filepath.Base(file))})
	}
	return list, err
}

// prepare writes the copies below v.dir, which exists.
func (v cpuView) prepare() error {
	info, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return err
	}
	if err := write(filepath.Join(v.dir, "cpuinfo"), filterCPUInfo(info, v.cpus)); err != nil {
		return err
	}
	if err := v.prepareCPUs(filepath.Join(v.dir, "cpu")); err != nil {
		return fmt.Errorf("copy %s: %w", sysCPU, err)
	}
	if err := v.prepareNodes(filepath.Join(v.dir, "node")); err != nil {
		return fmt.Errorf("copy %s: %w", sysNode, err)
	}
	return nil
}

func (v cpuView) prepareCPUs(dir string) error {
	list := []byte(cpulist.Format(v.cpus) + "\n")
	for _, name := range []string{"online", "present", "possible"} {
		if err := write(filepath.Join(dir, name), list); err != nil {
			return err
		}
	}
	for _, name := range []string{"offline", "isolated", "nohz_full", "kernel_max", "smt"} {
		if err := v.copyTree(filepath.Join(sysCPU, name), filepath.Join(dir, name)); err != nil {
			return err
		}
	}
	for _, cpu := range v.cpus {
		name := "cpu" + strconv.Itoa(cpu)
		for _, part := range []string{"topology", "cache", "cpu_capacity", "online"} {
			if err := v.copyTree(filepath.Join(sysCPU, name, part), filepath.Join(dir, name, part)); err != nil {
				return err
			}
		}
		nodes, err := filepath.Glob(filepath.Join(sysCPU, name, "node[0-9]*"))
		if err != nil {
			return err
		}
		for _, node := range nodes {
			base := filepath.Base(node)
			if err := os.Symlink(filepath.Join("../../node", base), filepath.Join(dir, name, base)); err != nil {
				return err
			}
		}
	}
	return nil
}

// prepareNodes copies only the two files of each node that list CPUs; the rest of
// a node (memory, huge pages) stays the kernel's own, and live.
func (v cpuView) prepareNodes(dir string) error {
	files, err := filepath.Glob(sysNode + "/node[0-9]*/cpu[lm]*")
	if err != nil {
		return err
	}
	for _, file := range files {
		if err := v.copyTree(file, filepath.Join(dir, strings.TrimPrefix(file, sysNode))); err != nil {
			return err
		}
	}
	return nil
}

// copyTree copies a sysfs file or directory. Missing paths, links and unreadable
// files are skipped.
func (v cpuView) copyTree(source, target string) error {
	info, err := os.Lstat(source)
	if os.IsNotExist(err) {
		return nil
	}
	if err != nil {
		return err
	}
	if info.Mode().IsRegular() {
		content, err := os.ReadFile(source)
		if err != nil {
			return nil // a file that only writes, or a value that this CPU lacks
		}
		return write(target, v.cut(filepath.Base(source), content))
	}
	if !info.IsDir() {
		return nil
	}
	entries, err := os.ReadDir(source)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if err := v.copyTree(filepath.Join(source, e.Name()), filepath.Join(target, e.Name())); err != nil {
			return err
		}
	}
	return nil
}

// cut removes CPUs that are not granted from a list or mask file.
func (v cpuView) cut(name string, content []byte) []byte {
	switch {
	case strings.HasSuffix(name, "list"), name == "offline", name == "isolated", name == "nohz_full":
		return cutList(content, v.cpus)
	case strings.HasSuffix(name, "_cpus"), strings.HasSuffix(name, "_siblings"), strings.HasSuffix(name, "map"):
		return cutMask(content, v.cpus)
	}
	return content
}

func cutList(content []byte, granted []int) []byte {
	cpus, err := cpulist.Parse(string(content))
	if err != nil {
		return []byte("\n")
	}
	cpus = slices.DeleteFunc(cpus, func(cpu int) bool { return !slices.Contains(granted, cpu) })
	return []byte(cpulist.Format(cpus) + "\n")
}

// cutMask handles the kernel's mask format: hexadecimal groups of 32 bits,
// highest first, separated by commas.
func cutMask(content []byte, granted []int) []byte {
	out := bytes.TrimSpace(bytes.Clone(content))
	bit := 0
	for i := len(out) - 1; i >= 0; i-- {
		if out[i] == ',' {
			continue
		}
		digit, err := strconv.ParseUint(string(out[i]), 16, 8)
		if err != nil {
			return []byte("0\n")
		}
		for n := 0; n < 4; n++ {
			if !slices.Contains(granted, bit+n) {
				digit &^= 1 << n
			}
		}
		out[i] = strconv.FormatUint(digit, 16)[0]
		bit += 4
	}
	return append(out, '\n')
}

// filterCPUInfo keeps the paragraphs of granted CPUs, and those about no
// particular CPU.
func filterCPUInfo(info []byte, granted []int) []byte {
	var kept [][]byte
	for _, paragraph := range bytes.Split(bytes.TrimSpace(info), []byte("\n\n")) {
		cpu, isCPU := processorOf(paragraph)
		if !isCPU || slices.Contains(granted, cpu) {
			kept = append(kept, paragraph)
		}
	}
	return append(bytes.Join(kept, []byte("\n\n")), "\n\n"...)
}

func processorOf(paragraph []byte) (cpu int, ok bool) {
	first, _, _ := bytes.Cut(paragraph, []byte("\n"))
	key, value, _ := bytes.Cut(first, []byte(":"))
	if string(bytes.TrimSpace(key)) != "processor" {
		return 0, false
	}
	cpu, err := strconv.Atoi(string(bytes.TrimSpace(value)))
	return cpu, err == nil
}

// write makes a world-readable file, and its parent directories.
func write(file string, content []byte) error {
	if err := host.MakeDirs(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	return host.MakeFile(file, content, 0o644)
}
