// SPDX-License-Identifier: Apache-2.0

package host

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/drayage/dray/internal/host/bpf"
)

// packetOptions is the What of an Unsupported.
const packetOptions = "options of packet sockets"

// LimitPacketOptions makes the kernel refuse most options of packet sockets that
// processes of the cgroup open from now on, also if other processes hold them later (see package bpf).
func (c Cgroup) LimitPacketOptions() error {
	dirs, err := c.dirs()
	if err != nil {
		return err
	}
	at := slices.IndexFunc(dirs, isV2)
	if at < 0 {
		return &Unsupported{What: packetOptions, Why: "no cgroup v2 hierarchy is mounted", Fix: "mkdir -p /sys/fs/cgroup/unified && mount -t cgroup2 cgroup2 /sys/fs/cgroup/unified"}
	}
	group, err := os.Open(dirs[at])
	if err != nil {
		return err
	}
	defer group.Close()
	if err := bpf.LimitPacketOptions(int(group.Fd())); err != nil {
		return fmt.Errorf("limit the %s: %w", packetOptions, err)
	}
	return nil
}

// probePrefix begins the name of a probe's cgroup. No chain's name begins with a dot.
const probePrefix = ".probe-"

func probeGroup(pid int) Cgroup {
	return Cgroup{Path: ownPrefix}.Child(probePrefix + strconv.Itoa(pid))
}

// CollectProbes removes the cgroups of probes whose process was killed.
func CollectProbes(ctx context.Context) error {
	dirs, err := Cgroup{Path: ownPrefix}.dirs()
	if err != nil {
		return err
	}
	var errs []error
	for _, dir := range dirs {
		entries, err := os.ReadDir(dir)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, err)
		}
		for _, e := range entries {
			number, isProbe := strings.CutPrefix(e.Name(), probePrefix)
			pid, err := strconv.Atoi(number)
			if isProbe && err == nil && pid > 0 && errors.Is(unix.Kill(pid, 0), unix.ESRCH) {
				errs = append(errs, removeCgroup(ctx, probeGroup(pid).Path))
			}
		}
	}
	return errors.Join(errs...)
}

// ProbePacketOptions reports whether a cgroup can limit them here. It leaves nothing behind,
// unless it is killed: see CollectProbes.
func ProbePacketOptions() error {
	if os.Geteuid() != 0 {
		return unix.EPERM
	}
	c := probeGroup(os.Getpid())
	err := c.Create(Limits{})
	if err == nil {
		err = c.LimitPacketOptions()
	}
	return errors.Join(err, removeCgroup(context.Background(), c.Path))
}
