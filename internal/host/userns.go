// SPDX-License-Identifier: Apache-2.0

package host

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
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

// CreateUserNetns makes a user namespace with those mappings and a network
// namespace owned by it, pins both, and brings the loopback up. Ids inside are
// consecutive; of the groups only the first is mapped.
//
// Both are pinned before any container exists: ports are plumbed first and survive
// a restart of the container, which joins the two by path.
func CreateUserNetns(userPath, netPath string, m ...UserMapping) error {
	for _, path := range []string{userPath, netPath} {
		if err := touch(path); err != nil {
			return err
		}
	}
	pid, release, err := holdUserNetns(m...)
	if err != nil {
		return err
	}
	defer release()
	held := "/proc/" + strconv.Itoa(pid) + "/ns/"
	for _, pin := range []struct{ source, target string }{{held + "user", userPath}, {held + "net", netPath}} {
		if err := unix.Mount(pin.source, pin.target, "", unix.MS_BIND, ""); err != nil {
			return fmt.Errorf("pin %s at %s: %w", pin.source, pin.target, err)
		}
	}
	ns := Netns{Path: netPath}
	if err := ns.SetUp("lo"); err != nil {
		return err
	}
	return ns.allowPing()
}

// allowPing lets every group of the namespace send ICMP echo requests. Without it
// ping needs CAP_NET_RAW (icmp(7), ping_group_range).
func (n Netns) allowPing() error {
	return n.Do(func() error {
		return os.WriteFile("/proc/sys/net/ipv4/ping_group_range", []byte("0 2147483647"), 0)
	})
}

// ProbeUserNetns tries to make a user and a network namespace. It leaves nothing
// behind, even after a SIGKILL.
func ProbeUserNetns(m UserMapping) error {
	return once("user namespace", func() error {
		pid, release, err := holdUserNetns(m)
		if err != nil {
			return err
		}
		defer release()
		return Netns{Path: "/proc/" + strconv.Itoa(pid) + "/ns/net"}.SetUp("lo")
	})
}

// holdUserNetns starts a process that holds new namespaces until release is called.
// It ends when its standard input closes, so at the latest with us.
func holdUserNetns(mappings ...UserMapping) (pid int, release func(), err error) {
	holder := exec.Command("cat")
	stdin, err := holder.StdinPipe()
	if err != nil {
		return 0, nil, err
	}
	var ids []syscall.SysProcIDMap
	inside := 0
	for _, m := range mappings {
		ids = append(ids, syscall.SysProcIDMap{ContainerID: inside, HostID: m.HostID, Size: m.Size})
		inside += m.Size
	}
	holder.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:                 unix.CLONE_NEWUSER | unix.CLONE_NEWNET,
		UidMappings:                ids,
		GidMappings:                ids[:1],
		GidMappingsEnableSetgroups: true,
	}
	err = holder.Start()
	for _, refusal := range []error{unix.EPERM, unix.ENOSPC, unix.EINVAL, unix.EUSERS} {
		if errors.Is(err, refusal) {
			return 0, nil, &Unsupported{
				What: "user namespace",
				Why:  "cannot create a user namespace: " + err.Error(),
				Fix:  "run as root, outside any chroot, and: sysctl -w user.max_user_namespaces=10000", Cause: err,
			}
		}
	}
	if err != nil {
		return 0, nil, fmt.Errorf("create user and network namespace: %w", err)
	}
	return holder.Process.Pid, func() {
		stdin.Close()
		_ = holder.Wait()
	}, nil
}

// CheckReachable checks that an ordinary host user can reach dir; who names that user
// in the error.
func CheckReachable(dir, who string) error {
	for ; dir != "/"; dir = filepath.Dir(dir) {
		info, err := os.Stat(dir)
		if err != nil {
			return err
		}
		if info.Mode().Perm()&0o001 == 0 {
			return fmt.Errorf("%s cannot enter %s: chmod o+x %s, or set DRAY_STATE to another directory", who, dir, dir)
		}
	}
	return nil
}
