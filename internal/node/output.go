// SPDX-License-Identifier: Apache-2.0

package node

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"
	"gopkg.in/natefinch/lumberjack.v2"

	"github.com/drayage/dray/internal/host"
)

const (
	// drainGrace is how long an ended command's last output may take to its log.
	drainGrace = 5 * time.Second
	drainPoll  = time.Millisecond

	readSize  = 64 << 10        // the default size of a pipe
	noteEvery = 5 * time.Second // so that each log file of a flood says so
)

// floodNote is added to the log of a function that printed too fast.
const floodNote = "dray: this function prints more than 1 MiB a second, so its writes wait for the log\n"

// output copies the output of a function's instances to its log. They write into a
// pipe that a log keeper can also read, so they do not die of SIGPIPE if the supervisor
// is killed.
type output struct {
	log   *lumberjack.Logger
	read  *host.PipeReader
	write *os.File
	mu    sync.Mutex    // held from read until written
	done  chan struct{} // closed when reading has ended
	stop  chan struct{} // closed to end it
	clock clock

	throttle throttle
	hurried  bool      // the last read had to wait
	noted    time.Time // the last floodNote
}

// clock is the time that an output reads at.
type clock struct {
	now   func() time.Time
	after func(time.Duration) <-chan time.Time
}

var realClock = clock{time.Now, time.After}

func logger(path string) *lumberjack.Logger {
	return &lumberjack.Logger{Filename: path, MaxSize: logMegabytes, MaxBackups: 1}
}

func newOutput(path string) (*output, error) { return outputAt(path, realClock) }

func outputAt(path string, at clock) (*output, error) {
	var fds [2]int
	if err := unix.Pipe2(fds[:], unix.O_CLOEXEC); err != nil {
		return nil, os.NewSyscallError("pipe2", err)
	}
	// It blocks, as commands expect.
	write := os.NewFile(uintptr(fds[1]), "output")
	o, err := readOutput(fds[0], at)
	if err != nil {
		write.Close()
		return nil, err
	}
	o.log, o.write = logger(path), write
	go o.copy()
	return o, nil
}

// readOutput returns an output without a log, which nothing copies yet.
func readOutput(pipe int, at clock) (*output, error) {
	read, err := host.NewPipeReader(pipe)
	if err != nil {
		return nil, errors.Join(err, unix.Close(pipe))
	}
	return &output{read: read, done: make(chan struct{}), stop: make(chan struct{}), clock: at}, nil
}

// open opens the pipe for one instance of the function. Flags such as O_NONBLOCK belong
// to an open file, and the size of the pipe to all, so the next instance gets new ones.
func (o *output) open() (*os.File, error) {
	path := fmt.Sprintf("/proc/self/fd/%d", o.write.Fd())
	fd, err := unix.Open(path, unix.O_WRONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("open the output: %w", err)
	}
	_, _ = unix.FcntlInt(uintptr(fd), unix.F_SETPIPE_SZ, readSize) // it fails while more is in the pipe
	return os.NewFile(uintptr(fd), "output"), nil
}

// copy reads until no writer is left, or stop is closed.
func (o *output) copy() {
	defer close(o.done)
	for o.read.Wait() == nil {
		n, err := o.step()
		if errors.Is(err, unix.EAGAIN) { // another process reads as well
			continue
		}
		if n == 0 || err != nil {
			return
		}
		pause := o.throttle.spend(o.clock.now(), n)
		o.hurried = pause > 0
		if !o.hurried {
			continue
		}
		select {
		case <-o.clock.after(pause):
		case <-o.stop:
			return
		}
	}
}

// buffers are shared by all outputs: most functions are silent most of the time.
var buffers = sync.Pool{New: func() any { return new([readSize]byte) }}

// step copies what one read returns.
func (o *output) step() (int, error) {
	buf := buffers.Get().(*[readSize]byte)
	defer buffers.Put(buf)
	o.mu.Lock()
	defer o.mu.Unlock()
	n, err := o.read.Read(buf[:])
	if n > 0 {
		o.keep(buf[:n])
	}
	return n, err
}

// keep logs text. If the pipe was more than half full after a pause, the log says so,
// at the end of a line. (A full pipe can be half empty: a page holds whole writes.)
func (o *output) keep(text []byte) {
	end := bytes.LastIndexByte(text, '\n') + 1
	if now := o.clock.now(); o.hurried && len(text) > readSize/2 && end > 0 && now.Sub(o.noted) >= noteEvery {
		o.noted = now
		o.put(text[:end])
		o.put([]byte(floodNote))
		text = text[end:]
	}
	o.put(text)
}

// put writes to the log. A full disk must not stop the function.
func (o *output) put(text []byte) {
	if len(text) > 0 {
		_, _ = o.log.Write(text)
	}
}

// drain waits until everything written so far is in the log.
func (o *output) drain() {
	for end := time.Now().Add(drainGrace); time.Now().Before(end) && o.pending() > 0; {
		time.Sleep(drainPoll)
	}
}

// pending is how many bytes are in the pipe.
func (o *output) pending() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.read.Pending()
}

// close ends the copying, even if a process that escaped can still write.
func (o *output) close() {
	o.drain()
	o.write.Close()
	close(o.stop)
	o.read.Interrupt()
	<-o.done
	o.read.Close()
	o.log.Close()
}
