// SPDX-License-Identifier: Apache-2.0

package host

import (
	"fmt"
	"math"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// firstInherited is the first descriptor after the standard three.
const firstInherited = 3

// CloseInheritedOnExec closes files that this process was started with, other than the standard three, in every program
// that it starts. A supervisor would otherwise hold the caller's locks and pipes as long as its chain is up, and
// a function of runtime process could use whatever its operator had open. Call it before anything opens files.
func CloseInheritedOnExec() error {
	err := unix.CloseRange(firstInherited, math.MaxUint32, unix.CLOSE_RANGE_CLOEXEC)
	if err == unix.ENOSYS || err == unix.EINVAL { // before Linux 5.11
		err = closeOneByOne()
	}
	if err != nil {
		return fmt.Errorf("close files of the caller in other programs: %w", err)
	}
	return nil
}

// closeOneByOne is CloseInheritedOnExec for kernels that take one descriptor at a time.
func closeOneByOne() error {
	open, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return err
	}
	for _, entry := range open {
		if fd, err := strconv.Atoi(entry.Name()); err == nil && fd >= firstInherited {
			unix.CloseOnExec(fd)
		}
	}
	return nil
}
