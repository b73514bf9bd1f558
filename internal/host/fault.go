// SPDX-License-Identifier: Apache-2.0

package host

import (
	"errors"
	"fmt"
	"io/fs"

	"golang.org/x/sys/unix"
)

// Fault is why something failed that this host may well be able to do, and how to fix
// it.
type Fault struct {
	Why   string // one clause: "too many open files"
	Fix   string // may be empty
	Cause error
}

func (f Fault) Error() string {
	if f.Fix == "" {
		return f.Why
	}
	return f.Why + " (" + f.Fix + ")"
}

// Unwrap returns the error that FaultOf explains.
func (f Fault) Unwrap() error { return f.Cause }

// FaultOf explains the error of a system call or of a program that was started.
func FaultOf(err error) Fault {
	var known Fault
	if errors.As(err, &known) {
		return known
	}
	fault := Fault{Why: err.Error(), Cause: err}
	var file *fs.PathError
	executed := errors.As(err, &file) && file.Op == "fork/exec"
	switch {
	case errors.Is(err, unix.EMFILE):
		fault.Why, fault.Fix = "too many open files in this process", "raise its limit, such as with ulimit -n 4096"+openFilesLimit()
	case errors.Is(err, unix.ENFILE):
		fault.Why, fault.Fix = "too many open files on this host", "raise the limit: sysctl fs.file-max"
	case errors.Is(err, unix.ENOSPC) && file != nil: // of other calls it is a limit
		fault.Fix = "free space there"
	case errors.Is(err, unix.ENOMEM):
		fault.Why, fault.Fix = "not enough memory: "+err.Error(), "free some, or raise the limit of this process's cgroup"
	case executed && errors.Is(err, unix.EAGAIN):
		fault.Why, fault.Fix = "too many processes", "raise ulimit -u, or pids.max of this process's cgroup"
	case executed && errors.Is(err, unix.EACCES):
		fault.Why, fault.Fix = file.Path+" may not be executed", "check its mode, and that its file system is not mounted noexec"
	case executed && errors.Is(err, unix.ENOEXEC):
		fault.Why, fault.Fix = file.Path+" is no program that this machine can execute", "install it again, for this machine's architecture"
	case executed && errors.Is(err, unix.ENOENT):
		fault.Why, fault.Fix = file.Path+" cannot be executed: its interpreter or loader does not exist", "install it again"
	}
	return fault
}

// IsLimit reports whether an error is about this process or host, and not about the file or
// program that it was met with.
func IsLimit(err error) bool {
	return errors.Is(err, unix.EMFILE) || errors.Is(err, unix.ENFILE) || errors.Is(err, unix.ENOMEM)
}

// openFilesLimit is the limit of this process's open files, if it is known.
func openFilesLimit() string {
	var limit unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &limit) != nil {
		return ""
	}
	return fmt.Sprintf("; it is %d", limit.Cur)
}
