// SPDX-License-Identifier: Apache-2.0

package runtime

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/drayage/dray/internal/host"
	"github.com/drayage/dray/internal/host/step"
)

// DefaultPids bounds the processes and threads of a function that sets no limit.
const DefaultPids = 512

// Parts of the host's root that a function does not see.
var (
	// PrivateDirs are other people's homes and media.
	PrivateDirs = []string{"/home", "/media", "/mnt", "/root"}
	// ScratchDirs are writable for a function: each is a file system in memory that
	// counts against the function's limit.
	ScratchDirs = []string{"/run", "/tmp", "/var/tmp"}
)

// Hidden is the directory of the host that contains a file, and that a container does
// not see or has one of its own in place of; "" if none does.
func Hidden(path string) string {
	for _, dir := range slices.Concat(PrivateDirs, ScratchDirs) {
		if strings.HasPrefix(path, dir+"/") {
			return dir
		}
	}
	return ""
}

// defaultPath is the search path for a function's programs unless its env sets
// one; it is Docker's.
const defaultPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// Limits are the limits of the function's cgroup.
func (s Spec) Limits() host.Limits {
	l := host.Limits{CPUs: s.CPUs, Memory: uint64(s.Function.Memory), Pids: s.Function.Pids}
	if c := s.Function.Compute; c != nil {
		l.Share = 1 // it has these CPUs for itself
		if len(s.CPUs) == 1 {
			l.Share = float64(c.Share)
		}
	}
	if l.Pids == 0 {
		l.Pids = DefaultPids
	}
	for _, h := range s.Function.HostPages() { // QEMU holds a machine's pages outside this cgroup
		if l.HugePages == nil {
			l.HugePages = map[uint64]uint64{}
		}
		l.HugePages[uint64(h.Size)] = uint64(h.Limit)
	}
	return l
}

// RunCgroup holds the command and its descendants.
func (s Spec) RunCgroup() host.Cgroup { return s.Cgroup.Child("run") }

// ToolsCgroup holds the instruments.
func (s Spec) ToolsCgroup() host.Cgroup { return s.Cgroup.Child("tools") }

// EngineCgroup holds the container engine's processes that serve the function
// (runc, the docker client, a pause container). It is a sibling of the function's
// cgroup, so the function's limits do not count them.
func (s Spec) EngineCgroup() host.Cgroup { return host.Cgroup{Path: s.Cgroup.Path + ".engine"} }

// Environ is the environment of a command on the host's root: a search path, a
// home, and the function's own variables; nothing of the caller's.
func (s Spec) Environ() []string {
	env := map[string]string{"PATH": s.searchPath(), "HOME": "/", "HOSTNAME": s.Function.Name}
	for name, value := range s.Function.Env {
		env[name] = value
	}
	list := make([]string, 0, len(env))
	for name, value := range env {
		list = append(list, name+"="+value)
	}
	slices.Sort(list)
	return list
}

// CgroupResources are what CreateCgroups may leave; the first is removed last.
func (s Spec) CgroupResources() []step.Resource {
	var made []step.Resource
	if len(s.Function.HostPages()) > 0 {
		made = append(made, host.HugetlbResource())
	}
	return append(made, host.CgroupResource(s.Cgroup))
}

// CreateCgroups makes the function's cgroup with its limits, and the children.
func (s Spec) CreateCgroups(children ...host.Cgroup) error {
	if err := s.Cgroup.Create(s.Limits()); err != nil {
		if len(s.Function.HostPages()) > 0 {
			err = fmt.Errorf("%w (limiting hugepages needs the hugetlb cgroup controller)", err)
		}
		return err
	}
	for _, child := range children {
		if err := child.Create(host.Limits{}); err != nil {
			return err
		}
	}
	return nil
}

// Netns is the function's network namespace, of Drayage's own making or pinned.
func (s Spec) Netns() host.Netns { return host.Netns{Path: filepath.Join(s.Dir, "net")} }

// CreateNetns is the step that creates that namespace.
func (s Spec) CreateNetns(sandbox *Sandbox) step.Step {
	ns := s.Netns()
	return step.Step{
		Name:  s.Function.Name + ": create network namespace",
		Makes: []step.Resource{host.NamespaceResource(ns.Path)},
		Do: func(context.Context) error {
			sandbox.Netns = ns
			return host.CreateNetns(ns.Path)
		},
	}
}

// CreateCgroup is the step that makes the function's cgroup and its children:
// "tools" for the instruments, and these.
func (s Spec) CreateCgroup(sandbox *Sandbox, children ...host.Cgroup) step.Step {
	return step.Step{
		Name:  s.Function.Name + ": create cgroup",
		Makes: s.CgroupResources(),
		Do: func(context.Context) error {
			sandbox.Tools = s.ToolsCgroup()
			return s.CreateCgroups(append(children, s.ToolsCgroup())...)
		},
	}
}
