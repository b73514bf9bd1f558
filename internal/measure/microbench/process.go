// SPDX-License-Identifier: Apache-2.0

package microbench

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/drayage/dray/internal/host"
)

// How often a log is read, and how long a program may take to answer: a busy machine takes seconds.
const (
	logEvery     = 5 * time.Millisecond
	answerWithin = 30 * time.Second
)

// process is a program in a measurement. Its output goes to a file, so that nothing of
// the bench runs meanwhile.
type process struct {
	cmd      *exec.Cmd
	in       io.WriteCloser
	log      string
	finished chan struct{}
}

// anyCPU lets the scheduler choose a program's CPU.
const anyCPU = -1

// startProcess starts a command on one CPU. It dies with its starting thread, which
// must be the main one.
func startProcess(argv []string, cpu int, log string) (*process, error) {
	if cpu != anyCPU {
		argv = append([]string{"taskset", "-c", strconv.Itoa(cpu)}, argv...)
	}
	out, err := os.Create(log)
	if err != nil {
		return nil, err
	}
	defer out.Close()
	p := &process{cmd: exec.Command(argv[0], argv[1:]...), log: log, finished: make(chan struct{})}
	p.cmd.Stdout, p.cmd.Stderr = out, out
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if p.in, err = p.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		_ = p.cmd.Wait() // its log shows how it ended
		close(p.finished)
	}()
	return p, nil
}

// alive reports whether the process exists and has not ended.
func (p *process) alive() bool {
	if p == nil {
		return false
	}
	select {
	case <-p.finished:
		return false
	default:
		return true
	}
}

// logged is the log's length.
func (p *process) logged() int64 {
	info, err := os.Stat(p.log)
	if err != nil {
		return 0
	}
	return info.Size()
}

// logFrom is the log from an offset on.
func (p *process) logFrom(from int64) string {
	f, err := os.Open(p.log)
	if err != nil {
		return ""
	}
	defer f.Close()
	if _, err := f.Seek(from, io.SeekStart); err != nil {
		return ""
	}
	text, _ := io.ReadAll(f) // as much as there is
	return string(text)
}

// await reads the log from an offset on until it matches, the process has ended,
// or time is up.
func (p *process) await(ctx context.Context, from int64, within time.Duration, wanted func(log string) bool) bool {
	for end := time.Now().Add(within); ; {
		alive := p.alive()
		if wanted(p.logFrom(from)) {
			return true
		}
		if !alive || time.Now().After(end) || host.Sleep(ctx, logEvery) != nil {
			return false
		}
	}
}

// says waits for a text in the log.
func (p *process) says(ctx context.Context, from int64, text string, within time.Duration) bool {
	return p.await(ctx, from, within, func(log string) bool { return strings.Contains(log, text) })
}

// number waits for a number after a label, and for the end of its line.
func (p *process) number(ctx context.Context, from int64, label string, within time.Duration) (value float64, ok bool) {
	ok = p.await(ctx, from, within, func(log string) bool {
		_, after, found := strings.Cut(log, label)
		line, _, ended := strings.Cut(after, "\n")
		if !found || !ended {
			return false
		}
		value = leadingNumber(line)
		return true
	})
	return value, ok
}

// leadingNumber is the number at the start of a text, after blanks; 0 if there is none.
func leadingNumber(text string) float64 {
	text = strings.TrimLeft(text, " \t")
	end := strings.IndexFunc(text, func(r rune) bool { return !strings.ContainsRune("+-.0123456789eE", r) })
	if end >= 0 {
		text = text[:end]
	}
	v, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return 0
	}
	return v
}

// write sends lines to the process's input.
func (p *process) write(lines string) bool {
	if !p.alive() {
		return false
	}
	_, err := io.WriteString(p.in, lines)
	return err == nil
}

// ask writes a line, and waits for the number printed after a label.
func (p *process) ask(ctx context.Context, line, label string) (float64, bool) {
	from := p.logged()
	if !p.write(line) {
		return 0, false
	}
	return p.number(ctx, from, label, answerWithin)
}

// children lists a process's children. Any of its threads may have started them.
func children(pid int) []int {
	var pids []int
	files, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid)) // the pattern is well formed
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			continue // the thread has ended
		}
		for _, word := range strings.Fields(string(text)) {
			if child, err := strconv.Atoi(word); err == nil {
				pids = append(pids, child)
			}
		}
	}
	return pids
}

func signalTree(pid int, sig unix.Signal) {
	pids := children(pid)
	_ = unix.Kill(pid, sig) // it may have just ended
	for _, child := range pids {
		signalTree(child, sig)
	}
}

// signal sends a signal to the process and its descendants.
func (p *process) signal(sig unix.Signal) {
	if p.alive() {
		signalTree(p.cmd.Process.Pid, sig)
	}
}

// innermost follows the most recently started child, then its last child, and so on.
func innermost(pid int) int {
	for {
		pids := children(pid)
		if len(pids) == 0 {
			return pid
		}
		pid = pids[len(pids)-1] // a script starts its servers first
	}
}

// innermost is the process itself, or the program that it wraps.
func (p *process) innermost() int { return innermost(p.cmd.Process.Pid) }

// kill ends the process and its descendants, also if they are stopped.
func (p *process) kill() {
	if p == nil {
		return
	}
	p.signal(unix.SIGKILL)
	<-p.finished
}

// waitOrKill waits for the process to end, and kills it on time-out.
func (p *process) waitOrKill(within time.Duration) {
	select {
	case <-p.finished:
	case <-time.After(within):
		p.kill()
	}
}
