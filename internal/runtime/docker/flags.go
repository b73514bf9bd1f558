// SPDX-License-Identifier: Apache-2.0

package docker

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/drayage/dray/internal/host"
	"github.com/drayage/dray/internal/runtime"
)

// confinement is what every container of Drayage's gets beside Docker's default
// seccomp profile.
var confinement = []string{
	"--cap-drop", "ALL", "--security-opt", "no-new-privileges", "--read-only",
	"--restart", "no", "--no-healthcheck", "--ulimit", "core=0",
}

const (
	scratchSize = 256 << 20 // bytes of each scratch directory, where memory is not limited
	maxFiles    = 20000     // RLIMIT_NOFILE, hard
)

func labels(s runtime.Spec) []string {
	return []string{
		"--label", "dray.chain=" + s.Chain, "--label", "dray.function=" + s.Function.Name,
		"--label", labelCgroup + "=" + s.Cgroup.Path,
	}
}

// cgroupParent puts a container below the cgroup. With systemd's driver a
// parent must be a slice of systemd's: there Docker's own place stays, and the
// container's limits are those of its flags.
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

// functionFlags are those of a container that runs a program of the function's.
// The image's entry point is not used: a command means the same in every runtime.
func (r *Runtime) functionFlags(ctx context.Context, s runtime.Spec, name string, argv []string) ([]string, error) {
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
	for _, dir := range []string{"/run", "/tmp", "/var/tmp"} {
		flags = append(flags, "--tmpfs", fmt.Sprintf("%s:rw,nosuid,nodev,exec,mode=1777,size=%d", dir, size))
	}
	if s.HasNativePorts() {
		mount, err := bindMount(s.PortsDir(), runtime.PortsInside)
		if err != nil {
			return nil, fmt.Errorf("the directory of native ports: %w: choose another state directory with DRAY_STATE", err)
		}
		flags = append(flags, mount...)
	}
	flags = append(flags, labels(s)...)
	flags = append(flags, confinement...)
	flags = append(flags, parent...)
	flags = append(flags, limitFlags(s.Limits())...)
	flags = append(flags, envFlags(s.Function.Env)...)
	flags = append(flags, "--entrypoint", argv[0], s.Function.Image)
	return append(flags, argv[1:]...), nil
}

// bindMount shows a file or directory of the host inside, to be read only. The
// flag is a line of comma-separated values: a path must not look like several.
func bindMount(source, target string) ([]string, error) {
	if strings.ContainsAny(source, ",\"\r\n") {
		return nil, fmt.Errorf("docker cannot mount %q: its path has a comma, a quotation mark or a line break", source)
	}
	return []string{"--mount", "type=bind,readonly,source=" + source + ",target=" + target}, nil
}

// limitFlags repeat the limits of the function's cgroup, under which the
// container is only where Docker's driver is cgroupfs. Docker has no limit of
// hugepages.
func limitFlags(l host.Limits) []string {
	flags := []string{"--pids-limit", strconv.Itoa(l.Pids)}
	if len(l.CPUs) > 0 {
		flags = append(flags, "--cpuset-cpus", host.FormatCPUs(l.CPUs))
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
