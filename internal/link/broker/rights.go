// SPDX-License-Identifier: Apache-2.0

package broker

import (
	"sync"

	"golang.org/x/sys/unix"
)

// A descriptor that an end attaches to a message can make close block: a TCP socket with
// SO_LINGER, unsent data and a deaf receiver does, for as long as the end likes. The
// thread that drops the last reference waits, so the goroutine of a link never closes such a
// descriptor, nor a socket whose queue may hold one.

// rightsMax is the most descriptors that one message can carry: SCM_MAX_FD of the kernel.
const rightsMax = 253

// discardMax bounds the descriptors of one end that wait to be closed. An end that has sent
// more is not heard until they are gone.
const discardMax = 2 * rightsMax

// discarder closes what one end chose, or may have filled, in the background and one after
// another, so an end can block no more than one thread.
type discarder struct {
	mu      sync.Mutex
	waiting []func()
	pending int // waiting, or being closed
}

// full reports whether too many descriptors of the end cannot be closed.
func (d *discarder) full() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.pending >= discardMax
}

// discard closes descriptors.
func (d *discarder) discard(fds ...int) {
	for _, fd := range fds {
		d.later(func() { _ = unix.Close(fd) })
	}
}

// hangUp ends a connection. Its peer notices at once, and receives what was sent before:
// closing with unread data would be an error to the peer, so the data is read first.
func (d *discarder) hangUp(connection int) {
	_ = unix.Shutdown(connection, unix.SHUT_RDWR)
	d.later(func() {
		var b [1]byte
		for range messagesPerStep {
			if n, _, _, _, err := unix.Recvmsg(connection, b[:], nil, unix.MSG_DONTWAIT); n == 0 || err != nil {
				break
			}
		}
		_ = unix.Close(connection)
	})
}

func (d *discarder) later(f func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.waiting = append(d.waiting, f)
	d.pending++
	if d.pending == 1 {
		go d.run()
	}
}

// run ends when nothing waits.
func (d *discarder) run() {
	for {
		d.mu.Lock()
		if d.pending == 0 {
			d.mu.Unlock()
			return
		}
		f := d.waiting[0]
		d.waiting = d.waiting[1:]
		d.mu.Unlock()
		f()
		d.mu.Lock()
		d.pending--
		d.mu.Unlock()
	}
}
