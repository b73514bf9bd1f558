// SPDX-License-Identifier: Apache-2.0

package broker

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"strconv"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// heldMax is how many old memfds an end may keep, by descriptor or by mapping:
// generations of a link, and telemetry of a port. The broker allocated them
// all, so they count against no limit of the function.
const heldMax = 8

// ledger knows which memfds of the broker are still in use: the kernel reports
// when a file's last descriptor and mapping are gone.
type ledger struct {
	file *os.File // an inotify instance; nil if the host has none left, and nothing can be lent
	done chan struct{}

	mu   sync.Mutex
	lent map[int32]lent // by watch
}

type lent struct {
	held *atomic.Int32
	gone func()
}

// tooMany reports whether the limit heldMax is reached.
func (l *ledger) tooMany(held *atomic.Int32) bool {
	if held.Load() < heldMax {
		return false
	}
	l.catchUp()
	return held.Load() >= heldMax
}

// newLedger lends nothing if the host has no inotify instance left: memory that cannot be
// counted has no bound.
func newLedger(log *logger) *ledger {
	l := &ledger{done: make(chan struct{}), lent: map[int32]lent{}}
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		log.print("links cannot be served: inotify: %v (raise fs.inotify.max_user_instances, and restart the chain)", err)
		close(l.done)
		return l
	}
	l.file = os.NewFile(uintptr(fd), "inotify")
	go l.run()
	return l
}

// add counts a memfd in held until nobody uses it, and then calls gone, from
// any goroutine. Memory that it cannot count must not be handed out.
func (l *ledger) add(memfd int, held *atomic.Int32, gone func()) error {
	if l.file == nil {
		return errors.New("the memory that functions keep cannot be counted: raise fs.inotify.max_user_instances, and restart the chain")
	}
	conn, err := l.file.SyscallConn()
	if err != nil {
		return err
	}
	l.mu.Lock() // the event may arrive before the watch is stored
	defer l.mu.Unlock()
	var watch int
	var failed error
	err = conn.Control(func(fd uintptr) {
		watch, failed = unix.InotifyAddWatch(int(fd), "/proc/self/fd/"+strconv.Itoa(memfd), unix.IN_DELETE_SELF)
	})
	if err := errors.Join(err, failed); err != nil {
		return fmt.Errorf("the memory that functions hold cannot be counted: inotify: %w (raise fs.inotify.max_user_watches)", err)
	}
	held.Add(1)
	l.lent[int32(watch)] = lent{held, gone}
	return nil
}

// run reads the kernel's events until close.
func (l *ledger) run() {
	defer close(l.done)
	conn, err := l.file.SyscallConn()
	for err == nil {
		err = conn.Read(func(fd uintptr) bool { return l.take(int(fd)) })
	}
}

// catchUp reads the events that run has not reached yet, so that nobody is
// blamed for memory already released.
func (l *ledger) catchUp() {
	if l.file == nil {
		return
	}
	if conn, err := l.file.SyscallConn(); err == nil {
		_ = conn.Control(func(fd uintptr) { l.take(int(fd)) })
	}
}

// take reads all pending events; false: none.
func (l *ledger) take(fd int) (some bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	events := make([]byte, 4096)
	for {
		n, err := unix.Read(fd, events)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil || n <= 0 {
			return some
		}
		some = true
		for b := events[:n]; len(b) >= unix.SizeofInotifyEvent; {
			ne := binary.NativeEndian
			l.event(int32(ne.Uint32(b)), ne.Uint32(b[4:]))
			b = b[min(len(b), unix.SizeofInotifyEvent+int(ne.Uint32(b[12:]))):]
		}
	}
}

func (l *ledger) event(watch int32, mask uint32) {
	if mask&unix.IN_Q_OVERFLOW != 0 { // better to count too little than forever
		for watch := range l.lent {
			l.forget(watch)
		}
	}
	if mask&unix.IN_DELETE_SELF != 0 {
		l.forget(watch)
	}
}

func (l *ledger) forget(watch int32) {
	if e, ok := l.lent[watch]; ok {
		delete(l.lent, watch)
		e.held.Add(-1)
		e.gone()
	}
}

func (l *ledger) close() {
	if l.file != nil {
		_ = l.file.Close()
	}
	<-l.done
}
