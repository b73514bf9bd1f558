// SPDX-License-Identifier: Apache-2.0

package host

import "golang.org/x/sys/unix"

// soPassRights is SO_PASSRIGHTS of linux/socket.h.
const soPassRights = 83

// RefuseRights makes the kernel refuse descriptors for a UNIX socket: the sender gets
// EPERM. It fails with ENOPROTOOPT before Linux 6.16.
func RefuseRights(socket int) error {
	return unix.SetsockoptInt(socket, unix.SOL_SOCKET, soPassRights, 0)
}

// RefusesRights reports whether this kernel can do that.
func RefusesRights() bool {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return false
	}
	defer unix.Close(fd)
	return RefuseRights(fd) == nil
}
