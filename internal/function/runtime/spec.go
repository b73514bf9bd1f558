// SPDX-License-Identifier: Apache-2.0

package runtime

import (
	"fmt"
	"slices"
	"strings"

	"github.com/drayage/dray/internal/host"
	"github.com/drayage/dray/internal/host/step"
)

// DefaultPids bounds the processes and threads of a function that asks for no
// limit of its own.
const DefaultPids = 512

// What of the host's root a function does not see.
var (
	// PrivateDirs are other people's homes and media.
	PrivateDirs = []string{"/home", "/media", "/mnt", "/root"}
	// ScratchDirs are where a function may write: each is a file system of its own,
	// in memory that counts against the function's.
	ScratchDirs = []string{"/run", "/tmp", "/var/tmp"}
)

// Private is the directory of PrivateDirs that a file of the host is in; "" if it is
// in none.
func Private(path string) string {
	for _, dir := range PrivateDirs {
		if strings.HasPrefix(path, dir+"/") {
			return dir
		}
	}
	return ""
}

// defaultPath is where a function's programs are looked for unless its env says
// otherwise; it is Docker's.
const defaultPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// Limits are the limits of the function's cgroup.
func (s Spec) Limits() host.Limits {
	l := host.Limits{CPUs: s.CPUs, Memory: uint64(s.Function.Memory), Pids: s.Function.Pids}
	if l.Pids == 0 {
		l.Pids = DefaultPids
	}
	for _, h := range s.Function.HostPages() { // QEMU holds a machine's outside of this cgroup
		if l.HugePages == nil {
			l.HugePages = map[uint64]uint64{}
		}
		l.HugePages[uint64(h.Size)] = uint64(h.Limit)
	}
	return l
}

// RunCgroup is where the command and everything it starts run.
func (s Spec) RunCgroup() host.Cgroup { return s.Cgroup.Child("run") }

// ToolsCgroup is where instruments run.
func (s Spec) ToolsCgroup() host.Cgroup { return s.Cgroup.Child("tools") }

// EngineCgroup holds the container engine's processes that serve the function
// (runc, the docker client, a pause container). It is beside the function's
// cgroup: they are not counted against the function's limits.
func (s Spec) EngineCgroup() host.Cgroup { return host.Cgroup{Path: s.Cgroup.Path + ".engine"} }

// Environ is the environment of a command on the host's root: a search path, a
// home, and what the function asks for; nothing of the caller's.
func (s Spec) Environ() []string {
	env := map[string]string{"PATH": defaultPath, "HOME": "/", "HOSTNAME": s.Function.Name}
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

// CgroupResources are what CreateCgroups may leave, first what is removed last.
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
