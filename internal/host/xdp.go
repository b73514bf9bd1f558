// SPDX-License-Identifier: Apache-2.0

package host

import "golang.org/x/sys/unix"

// ProbeXDPSocket tries to open an AF_XDP socket.
func ProbeXDPSocket() error {
	fd, err := unix.Socket(unix.AF_XDP, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return &Unsupported{
			What: "AF_XDP",
			Why:  "the kernel cannot open an AF_XDP socket: " + err.Error(),
			Fix:  "run as root on a kernel with CONFIG_XDP_SOCKETS", Cause: err,
		}
	}
	return unix.Close(fd)
}
