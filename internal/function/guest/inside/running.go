// SPDX-License-Identifier: Apache-2.0

package inside

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/drayage/dray/internal/function/guest/wire"
)

// outputGrace is how long an ended program's output may stay open: all its
// possible holders have been killed.
const outputGrace = 30 * time.Second

// running is one program with all its descendants.
type running struct {
	pid    int
	status <-chan unix.WaitStatus
	group  *group
	send   func(wire.Type, []byte) error
	stdin  *os.File
	output [2]*os.File // its standard output and error
	report *os.File    // a container keeper's first report; nil: the program is a process
	done   chan struct{}

	mu       sync.Mutex
	wakeup   *sync.Cond
	queue    [][]byte // input not taken yet
	queued   int      // bytes
	finished bool     // the input has ended
	ended    bool     // it has been reaped
}

// startProgram starts a program in its own control group and session.
func startProgram(r wire.Request, send func(wire.Type, []byte) error) (*running, error) {
	var path string
	var err error
	contained := r.Container != nil
	if contained {
		path, r, err = inContainer(r)
	} else {
		path, err = lookPath(r.Argv[0], r.Dir, r.Env)
	}
	if err != nil {
		return nil, err
	}
	g, err := newGroup(r)
	if err != nil {
		return nil, err
	}
	run := &running{group: g, send: send, done: make(chan struct{})}
	run.wakeup = sync.NewCond(&run.mu)
	if err := run.fork(path, r); err != nil {
		g.remove()
		return nil, err
	}
	if !contained {
		return run, nil
	}
	if err := awaitReport(run.report); err != nil {
		run.send = func(wire.Type, []byte) error { return nil } // no start is reported
		run.group.kill()
		run.begin()
		<-run.done
		return nil, err
	}
	return run, nil
}

func (r *running) fork(path string, req wire.Request) error {
	var files [4]*os.File // the program's ends
	defer func() {
		for _, f := range files {
			f.Close() // Close of a nil file only returns an error
		}
	}()
	var err error
	if files[0], r.stdin, err = os.Pipe(); err != nil {
		return err
	}
	for i := range r.output {
		if r.output[i], files[i+1], err = os.Pipe(); err != nil {
			return errors.Join(err, r.closePipes())
		}
	}
	passed := []uintptr{files[0].Fd(), files[1].Fd(), files[2].Fd()}
	if req.Container != nil {
		if r.report, files[ReportFD], err = os.Pipe(); err != nil {
			return errors.Join(err, r.closePipes())
		}
		passed = append(passed, files[ReportFD].Fd())
	}
	attr := &syscall.ProcAttr{
		Dir: req.Dir, Env: req.Env, Files: passed,
		Sys: &syscall.SysProcAttr{Setsid: true, UseCgroupFD: true, CgroupFD: r.group.fd()},
	}
	start := func() (err error) {
		r.pid, r.status, err = children.start(path, req.Argv, attr)
		return err
	}
	if req.Container != nil {
		err = start() // runc enters the namespace itself
	} else {
		err = inContainersNetns(start)
	}
	if err != nil {
		return errors.Join(err, r.closePipes())
	}
	return nil
}

func (r *running) closePipes() error {
	for _, f := range []*os.File{r.stdin, r.output[0], r.output[1], r.report} {
		f.Close() // Close of a nil file only returns an error
	}
	return nil
}

// begin forwards input and output, and starts finish.
func (r *running) begin() {
	var copied sync.WaitGroup
	for i, kind := range []wire.Type{wire.Stdout, wire.Stderr} {
		copied.Add(1)
		go func() {
			defer copied.Done()
			r.pass(r.output[i], kind)
		}()
	}
	go r.write()
	go r.finish(&copied)
}

func (r *running) pass(from *os.File, kind wire.Type) {
	buf := make([]byte, wire.MaxPayload)
	for {
		n, err := from.Read(buf)
		if n > 0 && r.send(kind, buf[:n]) != nil {
			return
		}
		if err != nil {
			return
		}
	}
}

// finish waits for the program, kills its remaining processes, and reports.
func (r *running) finish(copied *sync.WaitGroup) {
	status := <-r.status
	r.mu.Lock()
	r.ended = true
	r.finished = true
	r.wakeup.Broadcast()
	r.mu.Unlock()
	r.group.kill()
	deadline := time.Now().Add(outputGrace)
	for _, f := range r.output {
		_ = f.SetReadDeadline(deadline)
	}
	copied.Wait()
	_ = r.closePipes()
	r.group.remove()
	code := status.ExitStatus()
	if status.Signaled() {
		code = 128 + int(status.Signal())
	}
	_ = r.send(wire.Exit, wire.PutUint32(uint32(int32(code)))) // the client may have gone
	close(r.done)
}

// feed queues input; false if it exceeds the credit.
func (r *running) feed(data []byte) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.queued+len(data) > wire.Window {
		return false
	}
	r.queued += len(data)
	if !r.finished {
		r.queue = append(r.queue, data)
		r.wakeup.Broadcast()
	}
	return true
}

func (r *running) closeInput() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.finished = true
	r.wakeup.Broadcast()
}

// next is the next piece of input; nil at its end.
func (r *running) next() []byte {
	r.mu.Lock()
	defer r.mu.Unlock()
	for len(r.queue) == 0 && !r.finished {
		r.wakeup.Wait()
	}
	if len(r.queue) == 0 || r.ended {
		return nil
	}
	data := r.queue[0]
	r.queue = r.queue[1:]
	return data
}

// write passes input to the program, and credits what it has consumed.
func (r *running) write() {
	defer r.stdin.Close()
	for data := r.next(); data != nil; data = r.next() {
		_, err := r.stdin.Write(data)
		r.mu.Lock()
		r.queued -= len(data)
		r.mu.Unlock()
		if len(data) > 0 && r.send(wire.Credit, wire.PutUint32(uint32(len(data)))) != nil {
			return
		}
		if err != nil {
			r.discard()
			return
		}
	}
}

// discard drops input that the program no longer reads.
func (r *running) discard() {
	for data := r.next(); data != nil; data = r.next() {
		r.mu.Lock()
		r.queued -= len(data)
		r.mu.Unlock()
		if r.send(wire.Credit, wire.PutUint32(uint32(len(data)))) != nil {
			return
		}
	}
}

// signal goes to the program's first process; a SIGKILL to all of them.
func (r *running) signal(sig unix.Signal) {
	if sig == unix.SIGKILL {
		r.kill()
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.ended {
		_ = unix.Kill(r.pid, sig) // it may be ending
	}
}

// kill kills the program and its descendants. A keeper is asked first: processes that
// it put into another program's container are not in this group.
func (r *running) kill() {
	if r.report != nil {
		r.signal(unix.SIGQUIT)
		select {
		case <-r.done:
		case <-time.After(keeperGrace):
		}
	}
	r.group.kill()
}

// lookPath finds the program as a shell would, in the PATH of its own environment.
func lookPath(name, dir string, env []string) (string, error) {
	if strings.Contains(name, "/") {
		if !filepath.IsAbs(name) {
			name = filepath.Join("/", dir, name)
		}
		return name, nil
	}
	for _, e := range env {
		list, isPath := strings.CutPrefix(e, "PATH=")
		if !isPath {
			continue
		}
		for _, folder := range filepath.SplitList(list) {
			path := filepath.Join("/", folder, name)
			if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
				return path, nil
			}
		}
	}
	return "", errors.New("not found in PATH")
}
