// SPDX-License-Identifier: Apache-2.0

package node

import (
	"errors"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"
	"gopkg.in/natefinch/lumberjack.v2"
)

const (
	// drainGrace is how long an ended command's last output may take to its log.
	drainGrace = 5 * time.Second
	drainPoll  = time.Millisecond
)

// output copies the output of a function's instances to its log. They write into a
// pipe that a log keeper can also read, so they do not die of SIGPIPE if the supervisor
// is killed.
type output struct {
	log         *lumberjack.Logger
	read, write *os.File
	mu          sync.Mutex    // held from read until written
	done        chan struct{} // closed when reading has ended
}

func logger(path string) *lumberjack.Logger {
	return &lumberjack.Logger{Filename: path, MaxSize: logMegabytes, MaxBackups: 1}
}

func newOutput(path string) (*output, error) {
	read, write, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	o := &output{log: logger(path), read: read, write: write, done: make(chan struct{})}
	o.write.Fd() // from here on it blocks, as commands expect
	go o.copy()
	return o, nil
}

// copy reads until no writer is left, or the reading end is closed.
func (o *output) copy() {
	defer close(o.done)
	raw, err := o.read.SyscallConn()
	if err != nil {
		return
	}
	buf := make([]byte, 64<<10)
	for n := 1; n > 0; {
		err := raw.Read(func(fd uintptr) bool {
			o.mu.Lock()
			defer o.mu.Unlock()
			var err error
			for n, err = unix.Read(int(fd), buf); errors.Is(err, unix.EINTR); {
				n, err = unix.Read(int(fd), buf)
			}
			if n > 0 {
				_, _ = o.log.Write(buf[:n]) // a full disk must not stop the function
			}
			return !errors.Is(err, unix.EAGAIN)
		})
		if err != nil {
			return
		}
	}
}

// drain waits until everything written so far is in the log.
func (o *output) drain() {
	for end := time.Now().Add(drainGrace); time.Now().Before(end) && o.pending() > 0; {
		time.Sleep(drainPoll)
	}
}

// pending is how many bytes are in the pipe.
func (o *output) pending() (n int) {
	raw, err := o.read.SyscallConn()
	if err != nil {
		return 0
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	_ = raw.Control(func(fd uintptr) { n, _ = unix.IoctlGetInt(int(fd), unix.TIOCINQ) })
	return n
}

// reader is a duplicate of the reading end, for the log keeper. It must stay
// non-blocking: the two share that flag.
func (o *output) reader() (*os.File, error) {
	raw, err := o.read.SyscallConn()
	if err != nil {
		return nil, err
	}
	dup := -1
	var failed error
	if err := raw.Control(func(fd uintptr) { dup, failed = unix.FcntlInt(fd, unix.F_DUPFD_CLOEXEC, 0) }); err != nil {
		return nil, err
	}
	if failed != nil {
		return nil, failed
	}
	return os.NewFile(uintptr(dup), "output"), nil
}

// close ends the copying, even if a process that escaped can still write.
func (o *output) close() {
	o.drain()
	o.write.Close()
	o.read.Close()
	<-o.done
	o.log.Close()
}
