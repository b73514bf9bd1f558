// SPDX-License-Identifier: Apache-2.0

package host

import (
	"sync"

	"golang.org/x/sys/unix"
)

// ProbeSCTP returns nil if the kernel has SCTP, which may load its module.
var ProbeSCTP = sync.OnceValue(func() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, unix.IPPROTO_SCTP)
	if err != nil {
		return err
	}
	return unix.Close(fd)
})
