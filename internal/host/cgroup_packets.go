// SPDX-License-Identifier: Apache-2.0

package host

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"

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

// ProbePacketOptions reports whether a cgroup can limit them here. It leaves nothing behind.
func ProbePacketOptions() error {
	if os.Geteuid() != 0 {
		return unix.EPERM
	}
	c := Cgroup{Path: fmt.Sprintf("%s/probe-%d", ownPrefix, os.Getpid())}
	err := c.Create(Limits{})
	if err == nil {
		err = c.LimitPacketOptions()
	}
	return errors.Join(err, removeCgroup(context.Background(), c.Path))
}
