// SPDX-License-Identifier: Apache-2.0

package host

import (
	"errors"
	"fmt"
	"os"
	"runtime"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"

	"github.com/drayage/dray/internal/host/step"
)

// Netns is a network namespace, named by a file: one that Drayage pinned, or
// /proc/PID/ns/net. The zero Netns is this process's namespace.
type Netns struct {
	Path string
}

// HostNetns is the network namespace that `dray` itself runs in.
var HostNetns = Netns{}

func (n Netns) String() string {
	if n.Path == "" {
		return "host"
	}
	return n.Path
}

// hostNetns stays open as long as the process: threads enter other namespaces, so a
// /proc path may refer to one of them.
var hostNetns, hostNetnsErr = netns.GetFromPath("/proc/thread-self/ns/net")

// A thread that entered a namespace or cgroup ends with its goroutine. Go cannot
// end the main thread: it would stay in the namespace, and represent the process in
// /proc/PID and in cgroup.procs. So it runs only main.
func init() { runtime.LockOSThread() }

// open opens the namespace; the caller closes it.
func (n Netns) open() (netns.NsHandle, error) {
	if n.Path == "" {
		if hostNetnsErr != nil {
			return netns.None(), fmt.Errorf("network namespace %s: %w", n, hostNetnsErr)
		}
		fd, err := unix.FcntlInt(uintptr(hostNetns), unix.F_DUPFD_CLOEXEC, 0)
		if err != nil {
			return netns.None(), fmt.Errorf("network namespace %s: %w", n, err)
		}
		return netns.NsHandle(fd), nil
	}
	h, err := netns.GetFromPath(n.Path)
	if err != nil {
		return netns.None(), fmt.Errorf("network namespace %s: %w", n, err)
	}
	return h, nil
}

// Exists reports whether the file exists and is a pinned namespace.
func (n Netns) Exists() bool {
	if n.Path == "" {
		return true
	}
	var st unix.Statfs_t
	return unix.Statfs(n.Path, &st) == nil && st.Type == unix.NSFS_MAGIC
}

// Inode identifies the namespace, whatever its path.
func (n Netns) Inode() (uint64, error) {
	h, err := n.open()
	if err != nil {
		return 0, err
	}
	defer h.Close()
	var st unix.Stat_t
	if err := unix.Fstat(int(h), &st); err != nil {
		return 0, fmt.Errorf("network namespace %s: %w", n, err)
	}
	return st.Ino, nil
}

// Do calls f on a thread inside the namespace. The thread then ends, so that no
// other goroutine ever runs in the namespace by accident. f must not start
// goroutines that need the namespace.
func (n Netns) Do(f func() error) error {
	h, err := n.open()
	if err != nil {
		return err
	}
	defer h.Close()
	return onOwnThread(func() error {
		if n.Path != "" {
			if err := unix.Setns(int(h), unix.CLONE_NEWNET); err != nil {
				return fmt.Errorf("enter network namespace %s: %w", n, err)
			}
		}
		return f()
	})
}

// onOwnThread runs f on a locked thread that ends with it.
func onOwnThread(f func() error) error {
	done := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
		err := errors.New("ended by runtime.Goexit inside a namespace")
		defer func() { done <- err }()
		err = f()
	}()
	return <-done
}

// handle opens a netlink socket in the namespace; the caller closes it. It does not
// enter the host's namespace, so listing its interfaces does not need root.
func (n Netns) handle() (*netlink.Handle, error) {
	if n.Path == "" {
		return n.ownHandle()
	}
	h, err := n.open()
	if err != nil {
		return nil, err
	}
	defer h.Close()
	nl, err := netlink.NewHandleAt(h, unix.NETLINK_ROUTE)
	if err != nil {
		return nil, fmt.Errorf("netlink in %s: %w", n, err)
	}
	return nl, nil
}

// ownHandle opens a netlink socket in this process's namespace.
func (n Netns) ownHandle() (nl *netlink.Handle, err error) {
	err = onOwnThread(func() error {
		nl, err = netlink.NewHandle(unix.NETLINK_ROUTE)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("netlink in %s: %w", n, err)
	}
	return nl, nil
}

// KindNetns is a network or user namespace pinned by a bind mount on a file.
const KindNetns step.Kind = "namespace"

// NamespaceResource is the pinned namespace at path.
func NamespaceResource(path string) step.Resource {
	return step.Resource{Kind: KindNetns, Path: path}
}

// CreateNetns makes a network namespace with its loopback up and pins it at path.
func CreateNetns(path string) error {
	if err := touch(path); err != nil {
		return err
	}
	err := onOwnThread(func() error {
		if err := enterNewNetns(); err != nil {
			return err
		}
		return mount("/proc/thread-self/ns/net", path, "", unix.MS_BIND, "")
	})
	if err != nil {
		return fmt.Errorf("pin network namespace at %s: %w", path, err)
	}
	return Netns{Path: path}.SetUp("lo")
}

// NewNetns makes a network namespace with its loopback up that has no name. It lives as
// long as the file, or a socket or process in it; OfFile names it meanwhile.
func NewNetns() (*os.File, error) {
	var file *os.File
	err := onOwnThread(func() error {
		if err := enterNewNetns(); err != nil {
			return err
		}
		var err error
		file, err = os.Open("/proc/thread-self/ns/net")
		return err
	})
	if err != nil {
		return nil, err
	}
	if err := OfFile(file).SetUp("lo"); err != nil {
		_ = file.Close()
		return nil, err
	}
	return file, nil
}

// OfFile is the network namespace that this process has open as f.
func OfFile(f *os.File) Netns { return Netns{Path: fmt.Sprintf("/proc/self/fd/%d", f.Fd())} }

// PinNetns pins the network namespace at source, such as /proc/PID/ns/net, at path.
// It leaves the namespace itself unchanged.
func PinNetns(source, path string) error {
	ns, err := netns.GetFromPath(source)
	if err != nil {
		return fmt.Errorf("network namespace %s: %w", source, err)
	}
	defer ns.Close()
	if kind, err := unix.IoctlRetInt(int(ns), unix.NS_GET_NSTYPE); err != nil || kind != unix.CLONE_NEWNET {
		return fmt.Errorf("%s is not a network namespace", source)
	}
	if err := touch(path); err != nil {
		return err
	}
	if err := mount(source, path, "", unix.MS_BIND, ""); err != nil {
		return fmt.Errorf("pin %s at %s: %w", source, path, err)
	}
	return nil
}

// enterNewNetns moves this thread to a new network namespace.
func enterNewNetns() error {
	err := unix.Unshare(unix.CLONE_NEWNET)
	if errors.Is(err, unix.ENOSPC) {
		err = Fault{Why: "there are too many network namespaces", Fix: "raise the limit: sysctl user.max_net_namespaces", Cause: err}
	}
	if err != nil {
		return fmt.Errorf("unshare network namespace: %w", err)
	}
	return nil
}

func touch(path string) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_RDONLY|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return err
	}
	return f.Close()
}

// removeNamespace unpins a namespace; the kernel frees it when its last process ends.
func removeNamespace(path string) error {
	if err := unmountAll(path); err != nil {
		return err
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}
