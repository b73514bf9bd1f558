// SPDX-License-Identifier: Apache-2.0

package host

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// OpenTap makes a tap interface in the namespace and returns what its packets are
// read from and written to, each after a virtio-net header. The interface goes
// when the file is closed, by whoever has it last.
func (n Netns) OpenTap(name string) (*os.File, error) {
	var f *os.File
	err := n.Do(func() error {
		fd, err := unix.Open("/dev/net/tun", unix.O_RDWR|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
		if err != nil {
			return &Unsupported{What: "tap interfaces", Why: "/dev/net/tun: " + err.Error(), Fix: "modprobe tun"}
		}
		request, err := unix.NewIfreq(name)
		if err == nil {
			request.SetUint16(unix.IFF_TAP | unix.IFF_NO_PI | unix.IFF_VNET_HDR)
			err = unix.IoctlIfreq(fd, unix.TUNSETIFF, request)
		}
		if err != nil {
			unix.Close(fd)
			return err
		}
		f = os.NewFile(uintptr(fd), name)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("make tap %s in %s: %w", name, n, err)
	}
	return f, nil
}
