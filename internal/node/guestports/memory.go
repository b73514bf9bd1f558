// SPDX-License-Identifier: Apache-2.0

package guestports

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/drayage/dray/internal/function/guest"
)

// Seals as in PROTOCOL.md, section 6: QEMU is an end that checks its memory too.
const (
	sealsAtOnce = unix.F_SEAL_SHRINK | unix.F_SEAL_GROW
	sealsLive   = sealsAtOnce | unix.F_SEAL_FUTURE_WRITE | unix.F_SEAL_SEAL
)

// check checks memory before QEMU maps it: no process can shrink it, which would kill QEMU.
func (g *hostGeneration) check() (inode uint64, err error) {
	st, err := g.stat(sealsAtOnce)
	if err != nil {
		return 0, err
	}
	if uint64(st.Size) != g.size || g.size&(g.size-1) != 0 || g.size > guest.WindowBytes {
		return 0, fmt.Errorf("memory of %d bytes is no device: %w", st.Size, unix.EPROTO)
	}
	return st.Ino, nil
}

// sealed checks that nobody can punch holes any more, and that there are none: the guest
// would fill them at QEMU's expense.
func (g *hostGeneration) sealed() error {
	st, err := g.stat(sealsLive)
	if err == nil && uint64(st.Blocks)*512 < g.size {
		err = fmt.Errorf("the memory has holes: %w", unix.ENODATA)
	}
	return err
}

// stat describes the memory, which must have the seals. The generation may end meanwhile.
func (g *hostGeneration) stat(wanted int) (st unix.Stat_t, err error) {
	raw, err := g.memory.SyscallConn()
	if err != nil {
		return st, err
	}
	var failed error
	err = raw.Control(func(fd uintptr) {
		if seals, err := unix.FcntlInt(fd, unix.F_GET_SEALS, 0); err != nil || seals&wanted != wanted {
			failed = fmt.Errorf("the memory lacks seals: %w", unix.EPERM)
			return
		}
		failed = unix.Fstat(int(fd), &st)
	})
	return st, errors.Join(err, failed)
}
