// SPDX-License-Identifier: Apache-2.0

package node

import (
	"os"
	"os/exec"
	"path/filepath"
	"syscall"

	"github.com/drayage/dray/internal/host"
)

// detach starts a program in its own session and in an existing leaf of the chain's
// cgroup tree. It appends its output to a log, and passes it files from descriptor
// 3 on. The caller must wait for it.
func (l *Live) detach(leaf host.Cgroup, logFile, program string, args []string, files []*os.File, env ...string) (*exec.Cmd, error) {
	if err := os.MkdirAll(filepath.Dir(logFile), 0o700); err != nil {
		return nil, err
	}
	log, err := os.OpenFile(logFile, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	cmd := exec.Command(program, args...)
	cmd.Env = append(append(os.Environ(), "DRAY_STATE="+l.node.StateDir), env...)
	cmd.Dir, cmd.Stdout, cmd.Stderr, cmd.ExtraFiles = "/", log, log, files
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	return cmd, host.Place{Cgroup: leaf}.Start(cmd)
}
