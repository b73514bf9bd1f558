// SPDX-License-Identifier: Apache-2.0

package host

import (
	"errors"

	"golang.org/x/sys/unix"
)

// ProbeSCTP returns nil if the kernel has SCTP, which may load its module.
func ProbeSCTP() error {
	return once("sctp", func() error {
		fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, unix.IPPROTO_SCTP)
		if err != nil {
			return lacksSCTP(err)
		}
		return unix.Close(fd)
	})
}

// lacksSCTP turns the error for an unknown protocol into a typed one.
func lacksSCTP(err error) error {
	if !errors.Is(err, unix.EPROTONOSUPPORT) && !errors.Is(err, unix.ESOCKTNOSUPPORT) {
		return err
	}
	return &Unsupported{
		What: "SCTP", Why: "the kernel has none (" + err.Error() + ")", Cause: err,
		Fix: "only for functions that use it: modprobe sctp, or write sctp: ip or sctp: udp for them in the chain file (docs/sctp.md)",
	}
}
