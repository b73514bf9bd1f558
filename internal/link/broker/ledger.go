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

// heldMax is how much memory of the past an end may keep, by descriptor or by
// mapping: generations of a link, and telemetry of a port. All of it was made by
// the broker, and counts against no limit of the function's.
const heldMax = 8

// ledger knows which of the memory that was handed out still exists anywhere:
// the kernel tells when the last descriptor and the last mapping of a file are gone.
type ledger struct {
	file *os.File // an inotify instance; nil if the host gives none
	done chan struct{}

	mu   sync.Mutex
	lent map[int32]lent // by watch
}

type lent struct {
	held *atomic.Int32
	gone func()
}

// tooMany reports whether somebody keeps as much as may be kept.
func (l *ledger) tooMany(held *atomic.Int32) bool {
	if held.Load() < heldMax {
		return false
	}
	l.catchUp()
	return held.Load() >= heldMax
}

// newLedger counts nothing if the host gives no inotify instance: links are
// served without that bound then.
func newLedger(log *logger) *ledger {
	l := &ledger{done: make(chan struct{}), lent: map[int32]lent{}}
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		log.print("memory that functions keep is not counted: inotify: %v (raise fs.inotify.max_user_instances)", err)
		close(l.done)
		return l
	}
	l.file = os.NewFile(uintptr(fd), "inotify")
	go l.run()
	return l
}

// add counts a memfd in held until nobody has it, and then calls gone, from any
// goroutine.
func (l *ledger) add(memfd int, held *atomic.Int32, gone func()) error {
	if l.file == nil {
		return nil
	}
	conn, err := l.file.SyscallConn()
	if err != nil {
		return err
	}
	l.mu.Lock() // the event may come before the watch is known
	defer l.mu.Unlock()
	var watch int
	var failed error
	err = conn.Control(func(fd uintptr) {
		watch, failed = unix.InotifyAddWatch(int(fd), "/proc/self/fd/"+strconv.Itoa(memfd), unix.IN_DELETE_SELF)
	})
	if err := errors.Join(err, failed); err != nil {
		return fmt.Errorf("memory that functions keep is not counted: %w", err)
	}
	held.Add(1)
	l.lent[int32(watch)] = lent{held, gone}
	return nil
}

// run takes what the kernel tells, until close.
func (l *ledger) run() {
	defer close(l.done)
	conn, err := l.file.SyscallConn()
	for err == nil {
		err = conn.Read(func(fd uintptr) bool { return l.take(int(fd)) })
	}
}

// catchUp takes what run has not come to yet: nobody shall be blamed for what
// has been given back already.
func (l *ledger) catchUp() {
	if l.file == nil {
		return
	}
	if conn, err := l.file.SyscallConn(); err == nil {
		_ = conn.Control(func(fd uintptr) { l.take(int(fd)) })
	}
}

// take reads all events that there are; false: none.
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
	if mask&unix.IN_Q_OVERFLOW != 0 { // rather too little than for ever
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
