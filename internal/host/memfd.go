// SPDX-License-Identifier: Apache-2.0

package host

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// ProbeSealedMemory tries the requirements of a memory link between two functions:
// an anonymous file with a sealed size, populated without a fault, that afterwards
// no process can map for writing.
func ProbeSealedMemory() error {
	lacks := func(what, since string, err error) error {
		return &Unsupported{What: "shared memory", Why: "this kernel has no " + what + ": " + err.Error(), Fix: "needs Linux " + since + " or later"}
	}
	fd, err := unix.MemfdCreate("dray-probe", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		return lacks("sealed memory files", "3.17", err)
	}
	defer unix.Close(fd)
	size := os.Getpagesize()
	if err := unix.Ftruncate(fd, int64(size)); err != nil {
		return fmt.Errorf("size a memory file: %w", err)
	}
	memory, err := unix.Mmap(fd, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return fmt.Errorf("map a memory file: %w", err)
	}
	defer unix.Munmap(memory)
	if err := unix.Madvise(memory, unix.MADV_POPULATE_WRITE); err != nil {
		return lacks("way to populate memory (MADV_POPULATE_WRITE)", "5.14", err)
	}
	seals := unix.F_SEAL_SHRINK | unix.F_SEAL_GROW | unix.F_SEAL_FUTURE_WRITE | unix.F_SEAL_SEAL
	if _, err := unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, seals); err != nil {
		return lacks("seal against later writers (F_SEAL_FUTURE_WRITE)", "5.1", err)
	}
	return nil
}
