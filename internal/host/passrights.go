// SPDX-License-Identifier: Apache-2.0

package host

import "golang.org/x/sys/unix"

// soPassRights is SO_PASSRIGHTS of linux/socket.h, from Linux 6.16 on: a UNIX socket
// refuses descriptors that its peer attaches.
const soPassRights = 83

// RefusesRights reports whether this kernel can do that.
func RefusesRights() bool {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return false
	}
	defer unix.Close(fd)
	return unix.SetsockoptInt(fd, unix.SOL_SOCKET, soPassRights, 0) == nil
}
