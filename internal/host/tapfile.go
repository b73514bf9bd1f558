// SPDX-License-Identifier: Apache-2.0

package host

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// OpenTap makes a tap interface in the namespace and returns its file: each packet
// follows a virtio-net header. The interface is removed when the last holder closes
// the file.
func (n Netns) OpenTap(name string) (*os.File, error) {
	var f *os.File
	err := n.Do(func() error {
		fd, err := unix.Open("/dev/net/tun", unix.O_RDWR|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
		if err != nil {
			return &Unsupported{What: "tap interfaces", Why: "/dev/net/tun: " + err.Error(), Fix: "modprobe tun"}
		}
		f, err = tapFile(fd, name)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("make tap %s in %s: %w", name, n, err)
	}
	return f, nil
}

// OpenMacvtap returns the file of a macvtap in the namespace: each packet follows a
// virtio-net header. While it is open, received packets go to its reader, not to
// the kernel's network stack. Closing it keeps the interface. It accepts every
// group address, since the reader's groups are unknown here.
func (n Netns) OpenMacvtap(name string) (*os.File, error) {
	var f *os.File
	err := n.withLink(name, func(nl *netlink.Handle, l netlink.Link) error { return nl.LinkSetAllmulticastOn(l) })
	if err != nil {
		return nil, err
	}
	err = n.Do(func() error {
		dev, err := macvtapDevice(name)
		if err != nil {
			return err
		}
		fd, err := openDevice(dev)
		if err != nil {
			return &Unsupported{
				What: "macvtap interfaces", Why: "cannot open the file of one: " + err.Error(),
				Fix: fmt.Sprintf("in a container, allow it the character devices %d:*", unix.Major(dev)),
			}
		}
		f, err = tapFile(fd, name)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("open macvtap %s in %s: %w", name, n, err)
	}
	return f, nil
}

// tapFile sets a tap to a virtio-net header per packet. It takes over fd.
func tapFile(fd int, name string) (*os.File, error) {
	request, err := unix.NewIfreq(name)
	if err == nil {
		request.SetUint16(unix.IFF_TAP | unix.IFF_NO_PI | unix.IFF_VNET_HDR)
		err = unix.IoctlIfreq(fd, unix.TUNSETIFF, request)
	}
	if err != nil {
		unix.Close(fd)
		return nil, err
	}
	return os.NewFile(uintptr(fd), name), nil
}

// macvtapDevice is the device number of a macvtap in the thread's network
// namespace. The host's /sys shows another namespace.
func macvtapDevice(name string) (dev uint64, err error) {
	var mounts fds
	defer mounts.close()
	sysfs, err := mounts.newMount("sysfs", unix.MOUNT_ATTR_RDONLY)
	if err != nil {
		return 0, err
	}
	dir := fmt.Sprintf("/proc/self/fd/%d/class/net/%s/macvtap", sysfs, name)
	entries, err := os.ReadDir(dir)
	if errors.Is(err, os.ErrNotExist) || err == nil && len(entries) != 1 {
		return 0, errors.New("it is not a macvtap of this namespace")
	}
	if err != nil {
		return 0, err
	}
	text, err := os.ReadFile(dir + "/" + entries[0].Name() + "/dev")
	if err != nil {
		return 0, err
	}
	var major, minor uint32
	if _, err := fmt.Sscanf(strings.TrimSpace(string(text)), "%d:%d", &major, &minor); err != nil {
		return 0, fmt.Errorf("its device %q: %w", text, err)
	}
	return unix.Mkdev(major, minor), nil
}

// openDevice opens a character device by a private node. The one in /dev is named
// by interface index, which another namespace may use too.
func openDevice(dev uint64) (fd int, err error) {
	var mounts fds
	defer mounts.close()
	dir, err := mounts.newMount("tmpfs", unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_NOEXEC, "mode=0700")
	if err != nil {
		return -1, err
	}
	const node = "device"
	if err := unix.Mknodat(dir, node, unix.S_IFCHR|0o600, int(dev)); err != nil {
		return -1, fmt.Errorf("make its node: %w", err)
	}
	return unix.Openat(dir, node, unix.O_RDWR|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
}
