// SPDX-License-Identifier: Apache-2.0

package guestports

import (
	"errors"
	"os"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/drayage/dray/internal/host"
)

// bells are this relay's ends of one generation's bells.
type bells struct {
	files []*os.File
	over  sync.Once
	gone  func()
}

// newBells takes over the descriptors, one per queue. ring is called for each time that the
// other end rings, gone once when it hangs up or close is called.
func newBells(fds []int, ring func(queue int), gone func()) *bells {
	b := &bells{gone: gone}
	for _, fd := range fds {
		_ = host.RefuseRights(fd) // otherwise a read drops descriptors, in a goroutine of its own
		_ = unix.SetNonblock(fd, true)
		b.files = append(b.files, os.NewFile(uintptr(fd), "bell"))
	}
	for queue, f := range b.files {
		go func() {
			buffer := make([]byte, 64)
			for {
				if n, err := f.Read(buffer); n == 0 || err != nil {
					b.close()
					return
				}
				ring(queue)
			}
		}()
	}
	return b
}

// ring rings one bell. If it is full, it has something to read already.
func (b *bells) ring(queue int) {
	if queue >= len(b.files) {
		return
	}
	raw, err := b.files[queue].SyscallConn()
	if err != nil {
		return // closed
	}
	var sent error
	err = raw.Control(func(fd uintptr) {
		_, sent = unix.SendmsgN(int(fd), []byte{1}, nil, nil, unix.MSG_DONTWAIT|unix.MSG_NOSIGNAL)
	})
	if err == nil && sent != nil && !errors.Is(sent, unix.EAGAIN) {
		b.close()
	}
}

// close hangs up, without waiting: the kernel may close slowly what is in a bell.
func (b *bells) close() {
	b.over.Do(func() {
		go func() {
			for _, f := range b.files {
				f.Close()
			}
		}()
		b.gone()
	})
}
