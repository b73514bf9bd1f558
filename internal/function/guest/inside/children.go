// SPDX-License-Identifier: Apache-2.0

package inside

import (
	"os"
	"os/signal"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// children are the programs that the agent has started. As the guest's first
// process it also inherits all orphans, so one place waits for everything.
var children = family{waiting: map[int]chan<- unix.WaitStatus{}}

type family struct {
	mu      sync.Mutex
	waiting map[int]chan<- unix.WaitStatus
}

// start starts a program; its status arrives after it is reaped. The lock is held
// until its pid is known, so that no exit is missed.
func (f *family) start(path string, argv []string, attr *syscall.ProcAttr) (int, <-chan unix.WaitStatus, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	pid, err := syscall.ForkExec(path, argv, attr)
	if err != nil {
		return 0, nil, err
	}
	status := make(chan unix.WaitStatus, 1)
	f.waiting[pid] = status
	return pid, status, nil
}

// reapOrphans reaps every ended process until the guest ends.
func reapOrphans() {
	ended := make(chan os.Signal, 1)
	signal.Notify(ended, unix.SIGCHLD)
	for range ended {
		children.reap()
	}
}

// reap reaps ended processes while no start is in progress.
func (f *family) reap() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for {
		var status unix.WaitStatus
		pid, err := unix.Wait4(-1, &status, unix.WNOHANG, nil)
		if err != nil || pid <= 0 {
			return
		}
		if c, ours := f.waiting[pid]; ours {
			c <- status
			delete(f.waiting, pid)
		}
	}
}
