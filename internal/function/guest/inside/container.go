// SPDX-License-Identifier: Apache-2.0

package inside

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"golang.org/x/sys/unix"

	"github.com/drayage/dray/internal/function/guest/wire"
)

// ContainerDir is the directory of the guest's container, which holds the pin of its
// network namespace; ContainerParent is its parent.
const (
	ContainerParent = "/run/dray"
	ContainerDir    = ContainerParent + "/container"
	containerNetns  = ContainerDir + "/net"
)

// ReportFD is where a container's keeper reports ReportStarted, or why the program
// cannot run.
const (
	ReportFD      = 3
	ReportStarted = "started"
)

// keeperPath is the search path of a container's keeper, and of its helpers.
const keeperPath = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// keeperGrace is how long a keeper may take to end its processes.
const keeperGrace = 3 * time.Second

// inContainer makes the agent's own program the request's container keeper.
func inContainer(r wire.Request) (path string, keeper wire.Request, err error) {
	text, err := json.Marshal(r)
	keeper = r
	keeper.Argv = []string{"dray-guest", "contain", string(text)}
	keeper.Env, keeper.Dir = []string{keeperPath}, "/"
	// The limits apply to the container, not to its keeper.
	keeper.Group, keeper.Memory, keeper.Pids = "", 0, 0
	return "/proc/self/exe", keeper, err
}

// awaitReport waits until the keeper reports that the program runs.
func awaitReport(report *os.File) error {
	text, err := io.ReadAll(io.LimitReader(report, wire.MaxPayload))
	if err != nil {
		return err
	}
	if len(text) == 0 {
		return errors.New("the container's keeper ended without a message")
	}
	if string(text) != ReportStarted {
		return errors.New(string(text))
	}
	return nil
}

// inContainersNetns calls f on a thread in the container's network namespace, which
// has the machine's interfaces; without a container, in the current one.
func inContainersNetns(f func() error) error {
	to, err := os.Open(containerNetns)
	if errors.Is(err, fs.ErrNotExist) {
		return f()
	}
	if err != nil {
		return err
	}
	defer to.Close()
	own, err := os.Open("/proc/thread-self/ns/net")
	if err != nil {
		return err
	}
	defer own.Close()
	runtime.LockOSThread()
	if err := unix.Setns(int(to.Fd()), unix.CLONE_NEWNET); err != nil {
		runtime.UnlockOSThread()
		return fmt.Errorf("enter the container's network namespace: %w", err)
	}
	err = f()
	if back := unix.Setns(int(own.Fd()), unix.CLONE_NEWNET); back != nil {
		return errors.Join(err, back) // the thread stays locked, and ends with its goroutine
	}
	runtime.UnlockOSThread()
	return err
}

// EnterChild moves this process to a child of its control group.
func EnterChild(name string) error {
	text, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return err
	}
	var own string
	if _, err := fmt.Sscanf(string(text), "0::%s", &own); err != nil {
		return fmt.Errorf("own control group %q: %w", text, err)
	}
	child := filepath.Join(groupMount, own, name)
	if err := os.Mkdir(child, 0o755); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(child, "cgroup.procs"), []byte("0"), 0)
}
