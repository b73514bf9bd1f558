// SPDX-License-Identifier: Apache-2.0

package runc

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	specs "github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"

	"github.com/drayage/dray/internal/function/runtime"
	"github.com/drayage/dray/internal/host"
	"github.com/drayage/dray/internal/host/oci"
)

// busOfCPUs shows more CPUs than the function was granted.
var busOfCPUs = []string{"/sys/bus/cpu"}

const (
	scratchSize = 256 << 20 // of each scratch directory, if memory is not limited
	maxFiles    = 20000     // RLIMIT_NOFILE, hard
)

// ociSpec describes one container in the function's sandbox.
func ociSpec(s runtime.Spec, argv []string, cgroup host.Cgroup) (*specs.Spec, error) {
	if caps := s.Capabilities(); len(caps) > 0 {
		return nil, fmt.Errorf("function %s: one of its links needs %s of the host, which a function in a user namespace cannot have: use runtime docker or process", s.Function.Name, strings.Join(caps, ", "))
	}
	l := layout{dir: s.Dir}
	ids, err := readUserRange(l.userRange())
	if err != nil {
		return nil, fmt.Errorf("function %s has no sandbox: %w", s.Function.Name, err)
	}
	mounts, err := mounts(s, l)
	if err != nil {
		return nil, err
	}
	pci, err := filepath.Glob("/sys/devices/pci*")
	if err != nil {
		return nil, err
	}
	process, err := ociProcess(s, argv)
	if err != nil {
		return nil, err
	}
	mapping := []specs.LinuxIDMapping{{ContainerID: 0, HostID: uint32(ids.HostID), Size: uint32(ids.Size)}}
	spec := &specs.Spec{
		Version:  "1.0.2", // what runc 1.1 implements
		Process:  process,
		Root:     &specs.Root{Path: l.root(), Readonly: true},
		Hostname: s.Function.Name,
		Mounts:   mounts,
		Linux: &specs.Linux{
			UIDMappings: mapping,
			GIDMappings: mapping,
			CgroupsPath: cgroup.Path,
			Namespaces: []specs.LinuxNamespace{
				{Type: specs.UserNamespace, Path: l.user()},
				{Type: specs.NetworkNamespace, Path: l.net().Path},
				{Type: specs.PIDNamespace}, {Type: specs.MountNamespace}, {Type: specs.IPCNamespace},
				{Type: specs.UTSNamespace}, {Type: specs.CgroupNamespace},
			},
			// In its own network namespace a function needs no capability for low ports and
			// pings.
			Sysctl: map[string]string{
				"net.ipv4.ip_unprivileged_port_start": "0",
				"net.ipv4.ping_group_range":           fmt.Sprintf("0 %d", ids.Size-1),
			},
			MaskedPaths:   slices.Concat(pci, oci.MaskedPaths, busOfCPUs, runtime.PrivateDirs),
			ReadonlyPaths: oci.ReadonlyPaths,
			Resources:     &specs.LinuxResources{Devices: []specs.LinuxDeviceCgroup{{Allow: false, Access: "rwm"}}},
		},
	}
	if len(s.Function.Tuns) > 0 {
		if err := allowTun(spec.Linux); err != nil {
			return nil, fmt.Errorf("function %s: %w", s.Function.Name, err)
		}
	}
	if spec.Linux.Seccomp, err = s.OCISeccomp(spec); err != nil {
		return nil, fmt.Errorf("seccomp profile: %w", err)
	}
	return spec, nil
}

// allowTun shows the device by which a program attaches to a TUN interface that it owns.
// To make others takes a capability.
func allowTun(l *specs.Linux) error {
	dev, err := host.CheckTunDevice()
	if err != nil {
		return err
	}
	major, minor := int64(unix.Major(dev)), int64(unix.Minor(dev))
	l.Devices = append(l.Devices, specs.LinuxDevice{Path: host.TunDevice, Type: "c", Major: major, Minor: minor})
	l.Resources.Devices = append(l.Resources.Devices, specs.LinuxDeviceCgroup{Allow: true, Type: "c", Major: &major, Minor: &minor, Access: "rw"})
	return nil
}

// ociProcess is a process without any privilege.
func ociProcess(s runtime.Spec, argv []string) (*specs.Process, error) {
	var own unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &own); err != nil {
		return nil, fmt.Errorf("read the limit of open files: %w", err)
	}
	files := min(own.Max, maxFiles)
	rlimits := []specs.POSIXRlimit{
		{Type: "RLIMIT_CORE", Hard: 0, Soft: 0},
		{Type: "RLIMIT_NOFILE", Hard: files, Soft: min(1024, files)},
	}
	shares, err := host.UserRlimits()
	if err != nil {
		return nil, err
	}
	for _, l := range shares {
		rlimits = append(rlimits, specs.POSIXRlimit{Type: "RLIMIT_" + strings.ToUpper(l.Name), Hard: l.Most, Soft: l.Most})
	}
	var user specs.User
	if s.OpensSockets() {
		user.Umask = new(uint32)
	}
	return &specs.Process{
		User:            user,
		Args:            argv,
		Env:             s.Environ(),
		Cwd:             "/",
		Capabilities:    &specs.LinuxCapabilities{},
		NoNewPrivileges: true,
		Rlimits:         rlimits,
	}, nil
}

func mounts(s runtime.Spec, l layout) ([]specs.Mount, error) {
	size := fmt.Sprintf("size=%d", scratchSize)
	if s.Function.Memory > 0 {
		size = fmt.Sprintf("size=%d", s.Function.Memory/4)
	}
	list := []specs.Mount{
		{Destination: "/proc", Type: "proc", Source: "proc", Options: []string{"nosuid", "noexec", "nodev"}},
		{Destination: "/dev", Type: "tmpfs", Source: "tmpfs", Options: []string{"nosuid", "strictatime", "mode=755", "size=65536"}},
		{Destination: "/dev/pts", Type: "devpts", Source: "devpts", Options: []string{"nosuid", "noexec", "newinstance", "ptmxmode=0666", "mode=0620", "gid=5"}},
		{Destination: "/dev/shm", Type: "tmpfs", Source: "shm", Options: []string{"nosuid", "noexec", "nodev", "mode=1777", size}},
		{Destination: "/dev/mqueue", Type: "mqueue", Source: "mqueue", Options: []string{"nosuid", "noexec", "nodev"}},
		{Destination: "/sys", Type: "sysfs", Source: "sysfs", Options: []string{"nosuid", "noexec", "nodev", "ro"}},
	}
	for _, dir := range runtime.ScratchDirs {
		if isDir(filepath.Join(l.root(), dir)) { // a read-only root accepts no new mount points
			mode := "1777"
			if dir == "/run" {
				mode = s.RunMode()
			}
			list = append(list, specs.Mount{Destination: dir, Type: "tmpfs", Source: "tmpfs", Options: []string{"nosuid", "nodev", "mode=" + mode, size}})
		}
	}
	binds, err := s.Binds()
	if err != nil {
		return nil, err
	}
	if s.Function.Rootfs == "" {
		parts, err := host.ProgramMounts()
		if err != nil {
			return nil, err
		}
		for i, dir := range parts {
			if !slices.ContainsFunc(parts[:i], func(above string) bool { return strings.HasPrefix(dir, above+"/") }) { // else it comes along
				binds = append(binds, runtime.Bind{Source: dir, Target: dir})
			}
		}
	}
	if len(s.CPUs) > 0 {
		overlays, err := cpuView{dir: l.cpus(), cpus: s.CPUs}.overlays()
		if err != nil {
			return nil, err
		}
		binds = append(binds, overlays...)
	}
	for _, b := range binds {
		mount, err := oci.Bind(b.Source, b.Target, b.Writable)
		if err != nil {
			return nil, err
		}
		list = append(list, mount)
	}
	return list, nil
}

func isDir(path string) bool {
	info, err := os.Lstat(path)
	return err == nil && info.IsDir()
}
