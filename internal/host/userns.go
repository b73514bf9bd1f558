// SPDX-License-Identifier: Apache-2.0

package host

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
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
// namespace owned by it, limits what they take of the host's root, pins both, and
// brings the loopback up. Ids inside are
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
		if err := mount(pin.source, pin.target, "", unix.MS_BIND, ""); err != nil {
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

// holderScript sets the limits of the user namespace that it runs in: only a process
// in it can, and only with CAP_SYS_RESOURCE there. Functions never have that. It
// ends when its standard input closes.
const holderScript = `set -e
while [ $# -gt 0 ]; do echo "$2" >"$1"; shift 2; done
echo ready
exec cat`

// holdUserNetns starts a process that holds new namespaces until release is called.
// It ends when its standard input closes, so at the latest with us.
func holdUserNetns(mappings ...UserMapping) (pid int, release func(), err error) {
	limits, err := usersShare()
	if err != nil {
		return 0, nil, fmt.Errorf("limits of user namespaces: %w", err)
	}
	holder := exec.Command("sh", append([]string{"-c", holderScript, "sh"}, limits...)...)
	stdin, err := holder.StdinPipe()
	if err != nil {
		return 0, nil, err
	}
	stdout, err := holder.StdoutPipe()
	if err != nil {
		return 0, nil, err
	}
	var errs strings.Builder
	holder.Stderr = &errs
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
		Credential:                 &syscall.Credential{}, // root of the namespace: other users lose their capabilities at exec
	}
	if err := startHolder(holder); err != nil {
		return 0, nil, err
	}
	release = func() {
		stdin.Close()
		_ = holder.Wait()
	}
	if line, err := bufio.NewReader(stdout).ReadString('\n'); err != nil {
		release()
		return 0, nil, fmt.Errorf("limit what a user namespace takes of the host's root: %q, %w: %s", line, err, strings.TrimSpace(errs.String()))
	}
	return holder.Process.Pid, release, nil
}

// startHolder starts the process, or says why this host allows no user namespace.
func startHolder(holder *exec.Cmd) error {
	err := holder.Start()
	for _, refusal := range []error{unix.EPERM, unix.ENOSPC, unix.EINVAL, unix.EUSERS} {
		if errors.Is(err, refusal) {
			return &Unsupported{
				What: "user namespace",
				Why:  "cannot create a user namespace: " + err.Error(),
				Fix:  "run as root, outside any chroot, and: sysctl -w user.max_user_namespaces=10000 user.max_net_namespaces=10000", Cause: err,
			}
		}
	}
	if err != nil {
		return fmt.Errorf("create user and network namespace: %w", err)
	}
	return nil
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
