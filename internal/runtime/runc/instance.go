// SPDX-License-Identifier: Apache-2.0

package runc

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"

	"github.com/drayage/dray/internal/host"
	"github.com/drayage/dray/internal/runtime/child"
)

type instance struct {
	*child.Child // runc, which waits for the container
	id           host.ProcessID
	cgroup       host.Cgroup
}

// ID implements runtime.Instance.
func (i *instance) ID() host.ProcessID { return i.id }

// Stop implements runtime.Instance. The first process of a PID namespace
// ignores a SIGTERM that it does not handle, of which any other process would
// die: it is killed at once.
func (i *instance) Stop(ctx context.Context) error {
	sig := syscall.SIGTERM
	if i.diesOfSIGTERM() {
		sig = syscall.SIGKILL
	}
	i.id.Signal(sig)
	return i.End(ctx, func() error { return i.cgroup.Kill(context.Background()) })
}

// diesOfSIGTERM reports that the process neither handles, ignores nor blocks
// SIGTERM.
func (i *instance) diesOfSIGTERM() bool {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", i.id.PID))
	if err != nil {
		return false
	}
	const bit = 1 << (syscall.SIGTERM - 1)
	for _, line := range strings.Split(string(status), "\n") {
		name, value, _ := strings.Cut(line, ":")
		if name != "SigCgt" && name != "SigIgn" && name != "SigBlk" {
			continue
		}
		mask, err := strconv.ParseUint(strings.TrimSpace(value), 16, 64)
		if err != nil || mask&bit != 0 {
			return false
		}
	}
	return true
}
