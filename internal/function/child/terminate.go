// SPDX-License-Identifier: Apache-2.0

package child

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"

	"github.com/drayage/dray/internal/host"
)

// Terminate asks the first process of a PID namespace to end. Such a process
// ignores a SIGTERM that it does not handle, which would kill any other process:
// kill it at once.
func Terminate(id host.ProcessID) {
	sig := syscall.SIGTERM
	if diesOfSIGTERM(id.PID) {
		sig = syscall.SIGKILL
	}
	id.Signal(sig)
}

// diesOfSIGTERM reports whether the process neither handles, ignores nor blocks
// SIGTERM (proc_pid_status(5)).
func diesOfSIGTERM(pid int) bool {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
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
