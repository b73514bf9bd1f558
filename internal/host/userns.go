// SPDX-License-Identifier: Apache-2.0

package host

import (
	"fmt"
	"os/exec"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// UserMapping maps the ids of a user namespace: 0…Size−1 inside are
// HostID…HostID+Size−1 on the host.
type UserMapping struct {
	HostID int
	Size   int
}

// CreateUserNetns makes a user namespace with that mapping and a network
// namespace owned by it, pins both, and brings the loopback up.
//
// Both are pinned before any container exists, so that ports are plumbed first
// and survive a restart of the container, which joins the two by path.
func CreateUserNetns(userPath, netPath string, m UserMapping) error {
	for _, path := range []string{userPath, netPath} {
		if err := touch(path); err != nil {
			return err
		}
	}
	// A process has to hold the new namespaces until they are pinned; this one
	// ends as soon as its standard input closes, at the latest with us.
	holder := exec.Command("cat")
	stdin, err := holder.StdinPipe()
	if err != nil {
		return err
	}
	ids := []syscall.SysProcIDMap{{ContainerID: 0, HostID: m.HostID, Size: m.Size}}
	holder.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:                 unix.CLONE_NEWUSER | unix.CLONE_NEWNET,
		UidMappings:                ids,
		GidMappings:                ids,
		GidMappingsEnableSetgroups: true,
	}
	if err := holder.Start(); err != nil {
		return fmt.Errorf("create user and network namespace: %w (user namespaces must be allowed: user.max_user_namespaces > 0, and not inside a chroot)", err)
	}
	defer func() {
		stdin.Close()
		_ = holder.Wait()
	}()
	ns := "/proc/" + strconv.Itoa(holder.Process.Pid) + "/ns/"
	for _, pin := range []struct{ source, target string }{{ns + "user", userPath}, {ns + "net", netPath}} {
		if err := unix.Mount(pin.source, pin.target, "", unix.MS_BIND, ""); err != nil {
			return fmt.Errorf("pin %s at %s: %w", pin.source, pin.target, err)
		}
	}
	return Netns{Path: netPath}.SetUp("lo")
}
