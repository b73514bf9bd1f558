// SPDX-License-Identifier: Apache-2.0

package host

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// Place is where a program runs: a network namespace and a cgroup.
type Place struct {
	Netns  Netns
	Cgroup Cgroup
	// HugePages is another cgroup that limits huge pages. The process starts in it
	// if the hugetlb controller is in a v2 hierarchy next to v1. The children of a
	// container engine stay there: it does not know that hierarchy.
	HugePages Cgroup
}

// Start starts cmd inside the place. It is born in the namespace and in the cgroup,
// so killing the cgroup never misses it. Start refuses cmd.SysProcAttr.Pdeathsig:
// the forking thread ends with this call.
func (p Place) Start(cmd *exec.Cmd) error {
	return p.start(cmd, func() error { return nil })
}

// start starts cmd on a thread that prepare sets up.
func (p Place) start(cmd *exec.Cmd, prepare func() error) error {
	slog.Debug("run", "argv", cmd.Args)
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	if cmd.SysProcAttr.Pdeathsig != 0 {
		return errors.New("start in a place: Pdeathsig would kill the program at once")
	}
	unified, err := p.unified()
	if err != nil {
		return err
	}
	closeFD, err := unified.setCgroupFD(cmd.SysProcAttr)
	if err != nil {
		return err
	}
	defer closeFD()
	return p.Netns.Do(func() error {
		if err := p.Cgroup.joinThread(); err != nil {
			return err
		}
		if err := prepare(); err != nil {
			return err
		}
		return cmd.Start()
	})
}

// unified is the cgroup whose v2 directory the process gets.
func (p Place) unified() (Cgroup, error) {
	if p.HugePages.Path == "" {
		return p.Cgroup, nil
	}
	hs, err := hierarchies()
	if err != nil {
		return Cgroup{}, err
	}
	if _, hybrid := onHybrid(hs, hugetlb); hybrid {
		return p.HugePages, nil
	}
	return p.Cgroup, nil
}

// setCgroupFD makes clone3 place the child in the cgroup's v2 hierarchy, if any: a
// single thread cannot enter that.
func (c Cgroup) setCgroupFD(attr *syscall.SysProcAttr) (closeFD func(), err error) {
	dirs, err := c.dirs()
	if err != nil {
		return nil, err
	}
	if len(dirs) == 0 && c.Path != "" {
		return nil, fmt.Errorf("enter cgroup %s: it does not exist", c.Path)
	}
	for _, dir := range dirs {
		if !isV2(dir) {
			continue
		}
		f, err := os.Open(dir)
		if err != nil {
			return nil, fmt.Errorf("enter cgroup: %w", err)
		}
		attr.UseCgroupFD, attr.CgroupFD = true, int(f.Fd())
		return func() {
			f.Close()
			attr.UseCgroupFD = false
		}, nil
	}
	return func() {}, nil
}

// ProcessID identifies one process permanently; pids are reused.
type ProcessID struct {
	PID   int    `json:"pid"`
	Start uint64 `json:"start"` // clock ticks after boot, field 22 of /proc/PID/stat
	Boot  string `json:"boot"`  // /proc/sys/kernel/random/boot_id
}

// Exited reports whether an error of Identify says that no such process runs.
func Exited(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ESRCH) || errors.Is(err, errExited)
}

// Identify returns the identity of a running process.
func Identify(pid int) (ProcessID, error) {
	start, err := startTime(pid)
	if err != nil {
		return ProcessID{}, err
	}
	boot, err := BootID()
	return ProcessID{PID: pid, Start: start, Boot: boot}, err
}

// Alive reports whether that same process still runs (a zombie does not). It
// returns true if unknown, so that the process's resources are kept.
func (p ProcessID) Alive() bool {
	alive, err := p.state()
	return alive || err != nil
}

func (p ProcessID) state() (alive bool, err error) {
	boot, err := BootID()
	if err != nil || boot != p.Boot {
		return false, err
	}
	start, err := startTime(p.PID)
	if Exited(err) {
		return false, nil
	}
	return start == p.Start, err
}

// Signal sends a signal to that same process; false if it is gone.
func (p ProcessID) Signal(sig syscall.Signal) bool {
	fd, err := unix.PidfdOpen(p.PID, 0)
	if err != nil {
		return false
	}
	defer unix.Close(fd)
	// The descriptor refers to the process that had the pid when it was opened. So
	// the state read now is certainly that process's.
	alive, err := p.state()
	return alive && err == nil && unix.PidfdSendSignal(fd, sig, nil, 0) == nil
}

// Kill kills that same process; false if it is gone.
func (p ProcessID) Kill() bool { return p.Signal(unix.SIGKILL) }

// AwaitEnd waits until that same process has ended, perhaps before its parent
// notices. It fails with ctx's error, or if it cannot check processes.
func (p ProcessID) AwaitEnd(ctx context.Context) error {
	fd, err := unix.PidfdOpen(p.PID, 0)
	if errors.Is(err, unix.ESRCH) {
		return ctx.Err()
	}
	if err != nil {
		return fmt.Errorf("watch process %d: %w", p.PID, err)
	}
	defer unix.Close(fd)
	// The descriptor refers to the process that had the pid when it was opened. A
	// zombie may be a main thread whose other threads still hold files open: the
	// descriptor reports when they end.
	if _, err := startTime(p.PID); !errors.Is(err, errExited) {
		if alive, err := p.state(); err != nil || !alive {
			return errors.Join(err, ctx.Err())
		}
	}
	const look = 100 // ms between looks at ctx
	for ctx.Err() == nil {
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, look)
		if err != nil && !errors.Is(err, unix.EINTR) {
			return fmt.Errorf("watch process %d: %w", p.PID, err)
		}
		if n > 0 {
			return nil
		}
	}
	return ctx.Err()
}

// BootID changes at each boot.
func BootID() (string, error) {
	b, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	return strings.TrimSpace(string(b)), err
}

// errExited says that a process is a zombie.
var errExited = errors.New("has exited")

func startTime(pid int) (uint64, error) {
	fields, err := statFields(pid)
	if err != nil {
		return 0, err
	}
	return strconv.ParseUint(fields[19], 10, 64)
}

// parentOf is the parent of a running process.
func parentOf(pid int) (int, error) {
	fields, err := statFields(pid)
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(fields[1])
}

// mainThreadRuns reports whether the main thread of a process has not begun to end.
func mainThreadRuns(pid int) bool {
	fields, err := statFields(pid)
	if err != nil {
		return false
	}
	const exiting = 0x4 // PF_EXITING of the kernel's linux/sched.h
	flags, err := strconv.ParseUint(fields[6], 10, 64)
	return err == nil && flags&exiting == 0
}

// statFields are the fields of a running process's /proc/PID/stat, from its state on.
func statFields(pid int) ([]string, error) {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return nil, err
	}
	// The command name, in parentheses, may have any bytes; fields follow the last ).
	fields := strings.Fields(string(b[bytes.LastIndexByte(b, ')')+1:]))
	if len(fields) < 20 {
		return nil, fmt.Errorf("/proc/%d/stat is malformed", pid)
	}
	if fields[0] == "Z" || fields[0] == "X" {
		return nil, fmt.Errorf("process %d: %w", pid, errExited)
	}
	return fields, nil
}
