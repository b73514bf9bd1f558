// SPDX-License-Identifier: Apache-2.0

package docker

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/drayage/dray/internal/function/runtime"
	"github.com/drayage/dray/internal/host"
	"github.com/drayage/dray/internal/spec/cpulist"
)

// confinement applies to every container of Drayage's, in addition to seccompFlags.
var confinement = []string{
	"--cap-drop", "ALL", "--security-opt", "no-new-privileges", "--read-only",
	"--restart", "no", "--no-healthcheck", "--ulimit", "core=0",
}

const (
	scratchSize = 256 << 20 // bytes of each scratch directory, if memory is not limited
	maxFiles    = 20000     // RLIMIT_NOFILE, hard
)

func labels(s runtime.Spec) []string {
	return []string{
		"--label", "dray.chain=" + s.Chain, "--label", "dray.function=" + s.Function.Name,
		"--label", labelCgroup + "=" + s.Cgroup.Path,
	}
}

// cgroupParent puts a container below the cgroup. With systemd's driver a parent
// must be a systemd slice: then Docker chooses the place, and the flags set the
// container's limits.
func (r *Runtime) cgroupParent(ctx context.Context, c host.Cgroup) ([]string, error) {
	driver, err := r.cgroupDriver(ctx)
	if err != nil {
		return nil, err
	}
	if driver != "cgroupfs" {
		return nil, nil
	}
	return []string{"--cgroup-parent", c.Path}, nil
}

// cgroupDriver asks the daemon once; a driver needs a restart to change.
func (r *Runtime) cgroupDriver(ctx context.Context) (string, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.driver != "" {
		return r.driver, nil
	}
	driver, err := r.Client.Output(ctx, "info", "--format", "{{.CgroupDriver}}")
	if err == nil {
		r.driver = driver
	}
	return driver, err
}

// functionFlags are for a container that runs a program of the function. The
// image's entry point is unused: a command means the same in every runtime.
func (r *Runtime) functionFlags(ctx context.Context, s runtime.Spec, name string, argv []string) ([]string, error) {
	s, argv, err := s.Resolve(argv, true)
	if err != nil {
		return nil, err
	}
	parent, err := r.cgroupParent(ctx, s.Cgroup)
	if err != nil {
		return nil, err
	}
	var own unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &own); err != nil {
		return nil, fmt.Errorf("read the limit of open files: %w", err)
	}
	files := min(own.Max, maxFiles)
	size := uint64(scratchSize)
	if s.Function.Memory > 0 {
		size = uint64(s.Function.Memory) / 4
	}
	flags := []string{
		"--pull", "never", "--name", name, "--network", "container:" + pauseName(s), "--ipc", "private",
		"--ulimit", fmt.Sprintf("nofile=%d:%d", min(1024, files), files),
		"--shm-size", strconv.FormatUint(size, 10),
	}
	shares, err := host.UserRlimits()
	if err != nil {
		return nil, err
	}
	for _, l := range shares {
		flags = append(flags, "--ulimit", fmt.Sprintf("%s=%d:%d", l.Name, l.Most, l.Most))
	}
	for _, scratch := range [][2]string{{"/run", s.RunMode()}, {"/tmp", "1777"}, {"/var/tmp", "1777"}} {
		flags = append(flags, "--tmpfs", fmt.Sprintf("%s:rw,nosuid,nodev,exec,mode=%s,size=%d", scratch[0], scratch[1], size))
	}
	binds, err := s.Binds()
	if err != nil {
		return nil, err
	}
	for _, b := range binds {
		mount, err := bindMount(b)
		if err != nil {
			return nil, fmt.Errorf("the directories of its ports: %w: choose another state directory with DRAY_STATE", err)
		}
		flags = append(flags, mount...)
	}
	privileges, err := privilegeFlags(s)
	if err != nil {
		return nil, err
	}
	flags = append(flags, privileges...)
	flags = append(flags, labels(s)...)
	flags = append(flags, confinement...)
	flags = append(flags, parent...)
	flags = append(flags, limitFlags(s.Limits())...)
	flags = append(flags, envFlags(s.Function.Env)...)
	flags = append(flags, "--entrypoint", argv[0], s.Function.Image)
	return append(flags, argv[1:]...), nil
}

// bindMount shows a host file or directory inside. The flag is a line of
// comma-separated values: a path must not look like several.
func bindMount(b runtime.Bind) ([]string, error) {
	if strings.ContainsAny(b.Source, ",\"\r\n") {
		return nil, fmt.Errorf("docker cannot mount %q: its path has a comma, a quotation mark or a line break", b.Source)
	}
	kind := "type=bind,readonly,"
	if b.Writable {
		kind = "type=bind,"
	}
	return []string{"--mount", kind + "source=" + b.Source + ",target=" + b.Target}, nil
}

// privilegeFlags are the function's privileges: the system calls of its profile, the device
// of its TUN interfaces, and the capabilities of a transport that its chain had to permit.
func privilegeFlags(s runtime.Spec) ([]string, error) {
	var flags []string
	for _, c := range s.Capabilities() {
		flags = append(flags, "--cap-add", strings.TrimPrefix(c, "CAP_"))
	}
	if len(s.Function.Tuns) > 0 {
		if _, err := host.CheckTunDevice(); err != nil {
			return nil, err
		}
		flags = append(flags, "--device", host.TunDevice+":"+host.TunDevice+":rw")
	}
	seccomp, err := seccompFlags(s)
	return append(flags, seccomp...), err
}

// seccompFlags replace the daemon's own profile, which depends on its version: that
// of Docker 20.10 allows io_uring and sockets to the hypervisor.
func seccompFlags(s runtime.Spec) ([]string, error) {
	text, err := json.Marshal(s.SeccompProfile())
	if err != nil {
		return nil, err
	}
	file := seccompFile(s)
	// A client that starts another program of the function may be reading it.
	if found, err := os.ReadFile(file); err != nil || !bytes.Equal(found, text) {
		if err := os.WriteFile(file, text, 0o600); err != nil {
			return nil, err
		}
	}
	return []string{"--security-opt", "seccomp=" + file}, nil
}

// seccompFile is the profile that the docker client reads.
func seccompFile(s runtime.Spec) string { return filepath.Join(s.Dir, "seccomp.json") }

// limitFlags repeat the limits of the function's cgroup, which holds the
// container only with Docker's cgroupfs driver. Docker has no hugepages limit.
func limitFlags(l host.Limits) []string {
	flags := []string{"--pids-limit", strconv.Itoa(l.Pids)}
	if len(l.CPUs) > 0 {
		flags = append(flags, "--cpuset-cpus", cpulist.Format(l.CPUs))
	}
	if l.Memory > 0 {
		bytes := strconv.FormatUint(l.Memory, 10)
		flags = append(flags, "--memory", bytes, "--memory-swap", bytes)
	}
	return flags
}

func envFlags(env map[string]string) []string {
	var names []string
	for name := range env {
		names = append(names, name)
	}
	slices.Sort(names)
	var flags []string
	for _, name := range names {
		flags = append(flags, "--env", name+"="+env[name])
	}
	return flags
}
