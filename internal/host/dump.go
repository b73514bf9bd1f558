// SPDX-License-Identifier: Apache-2.0

package host

import (
	"errors"

	"github.com/vishvananda/netlink"
)

// dumpTries is how often dump lists at most.
const dumpTries = 100

// dump lists by netlink. If something has changed meanwhile the kernel says so, and the
// list may lack what was there all the time: it is then made again.
func dump[T any](list func() ([]T, error)) (all []T, err error) {
	for range dumpTries {
		if all, err = list(); !errors.Is(err, netlink.ErrDumpInterrupted) {
			break
		}
	}
	return all, err
}
