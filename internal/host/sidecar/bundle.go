// SPDX-License-Identifier: Apache-2.0

package sidecar

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/drayage/dray/internal/host"
	"github.com/drayage/dray/internal/host/oci"
	"github.com/drayage/dray/internal/spec/cpulist"
	"github.com/moby/profiles/seccomp"
	specs "github.com/opencontainers/runtime-spec/specs-go"
)

// capFiles lets a process open files whatever their mode, if their user and group
// are both mapped in its user namespace.
const capFiles = "CAP_DAC_OVERRIDE"

// scratchSize bounds each directory that the process may write to, in bytes.
const scratchSize = 16 << 20

// placementCalls put huge pages on NUMA nodes; without a capability Docker's
// profile forbids them.
var placementCalls = []string{"mbind", "set_mempolicy", "get_mempolicy"}

// watchCalls make what counts against the user who made the user namespace, the host's
// root. No switch needs them.
var watchCalls = []string{"inotify_init", "inotify_init1", "inotify_add_watch"}

func (p Process) writeBundle() error {
	spec, err := p.ociSpec()
	if err != nil {
		return err
	}
	return p.container().WriteConfig(spec)
}

func (p Process) ociSpec() (*specs.Spec, error) {
	mounts, err := p.mounts()
	if err != nil {
		return nil, err
	}
	pci, err := filepath.Glob("/sys/devices/pci*")
	if err != nil {
		return nil, err
	}
	network := specs.LinuxNamespace{Type: specs.NetworkNamespace}
	if p.Netns != nil {
		network.Path = p.Netns.Path
	}
	process, err := p.process()
	if err != nil {
		return nil, err
	}
	user := specs.LinuxNamespace{Type: specs.UserNamespace, Path: p.Userns}
	mapping := p.mapping()
	spec := &specs.Spec{
		Version:  "1.0.2", // what runc 1.1 implements
		Process:  process,
		Root:     &specs.Root{Path: p.root(), Readonly: true},
		Hostname: p.Name,
		Mounts:   mounts,
		Linux: &specs.Linux{
			UIDMappings: mapping,
			GIDMappings: mapping[:1],
			CgroupsPath: p.group().Path,
			Namespaces: []specs.LinuxNamespace{
				user, network,
				{Type: specs.PIDNamespace}, {Type: specs.MountNamespace}, {Type: specs.IPCNamespace},
				{Type: specs.UTSNamespace}, {Type: specs.CgroupNamespace},
			},
			MaskedPaths:   append(pci, oci.MaskedPaths...),
			ReadonlyPaths: oci.ReadonlyPaths,
			Resources:     p.resources(),
		},
	}
	if spec.Linux.Seccomp, err = seccomp.GetDefaultProfile(spec); err != nil {
		return nil, fmt.Errorf("seccomp profile: %w", err)
	}
	for i := range spec.Linux.Seccomp.Syscalls {
		rule := &spec.Linux.Seccomp.Syscalls[i]
		rule.Names = slices.DeleteFunc(rule.Names, func(name string) bool { return slices.Contains(watchCalls, name) })
	}
	if p.HugePages {
		spec.Linux.Seccomp.Syscalls = append(spec.Linux.Seccomp.Syscalls,
			specs.LinuxSyscall{Names: placementCalls, Action: specs.ActAllow})
	}
	return spec, nil
}

// mapping maps the process to root of a user namespace with only its own user and
// the users of Files. Its only group is its own.
func (p Process) mapping() []specs.LinuxIDMapping {
	var list []specs.LinuxIDMapping
	for inside, m := range p.Users() {
		list = append(list, specs.LinuxIDMapping{ContainerID: uint32(inside), HostID: uint32(m.HostID), Size: 1})
	}
	return list
}

func (p Process) process() (*specs.Process, error) {
	caps := slices.Clone(p.Caps)
	if len(p.Files) > 0 {
		caps = append(caps, capFiles)
	}
	rlimits := []specs.POSIXRlimit{
		{Type: "RLIMIT_CORE", Hard: 0, Soft: 0},
		{Type: "RLIMIT_NOFILE", Hard: 4096, Soft: 4096},
	}
	shares, err := host.UserRlimits()
	if err != nil {
		return nil, err
	}
	for _, l := range shares {
		rlimits = append(rlimits, specs.POSIXRlimit{Type: "RLIMIT_" + strings.ToUpper(l.Name), Hard: l.Most, Soft: l.Most})
	}
	return &specs.Process{
		Args:            p.Args,
		Env:             append([]string{"PATH=/usr/sbin:/usr/bin", "HOME=/tmp"}, p.Env...),
		Cwd:             "/",
		Capabilities:    &specs.LinuxCapabilities{Bounding: caps, Effective: caps, Permitted: caps},
		NoNewPrivileges: true,
		Rlimits:         rlimits,
	}, nil
}

func (p Process) resources() *specs.LinuxResources {
	threads := int64(maxThreads)
	r := &specs.LinuxResources{
		Devices: []specs.LinuxDeviceCgroup{{Allow: false, Access: "rwm"}},
		Pids:    &specs.LinuxPids{Limit: &threads},
	}
	if len(p.CPUs) > 0 {
		r.CPU = &specs.LinuxCPU{Cpus: cpulist.Format(p.CPUs)}
	}
	if p.Memory > 0 {
		limit := int64(p.Memory)
		r.Memory = &specs.LinuxMemory{Limit: &limit}
	}
	return r
}

// maxThreads bounds a sidecar's threads: a switch has some ten, and one per CPU.
const maxThreads = 512

func (p Process) mounts() ([]specs.Mount, error) {
	size := fmt.Sprintf("size=%d", scratchSize)
	list := []specs.Mount{
		{Destination: "/proc", Type: "proc", Source: "proc", Options: []string{"nosuid", "noexec", "nodev"}},
		{Destination: "/dev", Type: "tmpfs", Source: "tmpfs", Options: []string{"nosuid", "noexec", "mode=755", "size=65536"}},
		{Destination: "/sys", Type: "sysfs", Source: "sysfs", Options: []string{"nosuid", "noexec", "nodev", "ro"}},
	}
	for _, dir := range []string{"/tmp", "/run", "/dev/shm"} {
		list = append(list, specs.Mount{Destination: dir, Type: "tmpfs", Source: "tmpfs", Options: []string{"nosuid", "nodev", "noexec", "mode=700", size}})
	}
	usr, err := oci.Bind("/usr", "/usr", false)
	if err != nil {
		return nil, err
	}
	list = append(list, usr)
	for _, b := range p.Binds {
		mount, err := oci.Bind(b.Source, b.Target, b.Write)
		if err != nil {
			return nil, err
		}
		list = append(list, mount)
	}
	for _, device := range p.Devices {
		list = append(list, specs.Mount{Destination: device, Type: "bind", Source: device, Options: []string{"bind", "nosuid", "noexec"}})
	}
	return list, nil
}
