// SPDX-License-Identifier: Apache-2.0

// Package runc runs a function as an OCI container with runc: the default
// runtime. The function sees its own processes, CPUs and ports, and read-only the
// host's root or its own root file system. It is root of a user namespace without
// any capability, under a seccomp profile. The kernel refuses to
// execute programs with file capabilities there, such as Debian's ping; the
// sockets that ping needs are allowed.
//
// All state of this runtime is in the function's directory, so removing the
// journaled resources is a complete clean-up: runc's own state is not needed.
package runc

import (
	"context"
	"os"
	"strings"

	"github.com/drayage/dray/internal/function/runtime"
	"github.com/drayage/dray/internal/host"
	"github.com/drayage/dray/internal/spec/chain"
	"github.com/drayage/dray/internal/spec/inventory"
)

// Runtime is the runc runtime.
type Runtime struct{ runtime.Base }

// New returns the runc runtime.
func New() *Runtime { return &Runtime{runtime.Base(chain.RuntimeRunc)} }

// Probe implements runtime.Runtime: runc answers, and this host allows user
// namespaces. Without them nothing runs, as a container's root would be the
// host's.
func (*Runtime) Probe(ctx context.Context) inventory.Item {
	const name = string(chain.RuntimeRunc)
	out, err := host.Helper{Program: "runc", Args: []string{"--version"}, Package: "runc"}.Output(ctx)
	if err == nil && os.Geteuid() != 0 {
		return inventory.NotTried(name)
	}
	if err == nil {
		err = host.ProbeUserNetns(host.UserMapping{HostID: firstHostID, Size: rangeSize})
	}
	item := host.ProbeItem(name, err)
	first, _, _ := strings.Cut(out, "\n")
	item.Version = strings.TrimPrefix(first, "runc version ")
	return item
}
