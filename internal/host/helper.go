// SPDX-License-Identifier: Apache-2.0

package host

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// helperLimit is how long a helper without a limit of its own may take. One that
// answers takes milliseconds, or seconds on an emulated CPU.
const helperLimit = 30 * time.Second

// heldOutput is how long a child of a helper may hold its output after it has ended.
var heldOutput = 5 * time.Second

// maxOutput bounds what is kept of a helper's output, in bytes.
const maxOutput = 64 << 20

// Helper is a program that answers and ends, such as tc. Run is the only way to call
// one: it ends in time, and its error says what happened.
type Helper struct {
	Program string // a name to look up, or a path
	Args    []string
	Package string        // the Debian package that has the program; empty: none to suggest
	Place   Place         // where it runs
	Env     []string      // besides the environment of this process, with LC_ALL=C
	Dir     string        // empty: this process's own
	Limit   time.Duration // zero: helperLimit
	Stdin   io.Reader
	Stdout  io.Writer // nil: it is in the answer
	Stderr  io.Writer // nil: it is in the answer
}

// Answer is what a helper printed.
type Answer struct{ Out, Err string }

// Text is all of it.
func (a Answer) Text() string { return a.Out + a.Err }

// HelperError is a helper that gave no answer, or failed.
type HelperError struct {
	Command string // "runc --version"
	Fault   Fault
	Said    string // its last lines; empty: nothing
}

func (e *HelperError) Error() string { return Fault{Why: e.why(), Fix: e.Fault.Fix}.Error() }

// why is the error without its fix.
func (e *HelperError) why() string {
	text := e.Command + ": " + e.Fault.Why
	if e.Said != "" {
		text += ": " + e.Said
	}
	return text
}

// Unwrap returns the fault.
func (e *HelperError) Unwrap() error { return e.Fault }

// Run runs the helper until it ends, and at most for its limit. A terminal's interrupt is for
// this process alone, which may need the helper to clean up. If the program is absent,
// the error is *Unsupported with its package; else it is *HelperError, and the answer
// is what the helper printed until then.
func (h Helper) Run(ctx context.Context) (Answer, error) {
	program, err := NeedProgram(h.name(), h.Program, h.Package)
	if err != nil {
		return Answer{}, err
	}
	limit := h.Limit
	if limit == 0 {
		limit = helperLimit
	}
	limited, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	cmd := exec.CommandContext(limited, program, h.Args...)
	cmd.Dir, cmd.Stdin, cmd.WaitDelay = h.Dir, h.Stdin, heldOutput
	cmd.Env = append(append(os.Environ(), "LC_ALL=C"), h.Env...) // what it prints is parsed
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	cmd.Cancel = func() error { return killSession(cmd.Process) }
	var out, errs bounded
	cmd.Stdout, cmd.Stderr = either(h.Stdout, &out), either(h.Stderr, &errs)
	began := time.Now()
	if err = h.Place.Start(cmd); err == nil {
		err = cmd.Wait()
	}
	slog.DebugContext(ctx, "helper", "argv", cmd.Args, "took", time.Since(began), "error", err)
	answer := Answer{out.kept.String(), errs.kept.String()}
	if err == nil || errors.Is(err, exec.ErrWaitDelay) { // only its children hold its output
		return answer, nil
	}
	return answer, h.failed(ctx, limited, limit, answer, err)
}

// Output is the standard output of Run, without the spaces around it.
func (h Helper) Output(ctx context.Context) (string, error) {
	answer, err := h.Run(ctx)
	return strings.TrimSpace(answer.Out), err
}

func (h Helper) name() string { return filepath.Base(h.Program) }

// failed is the error of a helper that has not succeeded.
func (h Helper) failed(ctx, limited context.Context, limit time.Duration, answer Answer, err error) error {
	e := &HelperError{Command: h.command(), Fault: FaultOf(err), Said: said(answer)}
	switch {
	case ctx.Err() != nil:
		e.Fault = Fault{Why: ctx.Err().Error(), Cause: ctx.Err()}
	case limited.Err() != nil:
		e.Fault = Fault{Why: fmt.Sprintf("no answer within %v", limit), Cause: context.DeadlineExceeded}
	}
	return e
}

// command is the program with its arguments, as far as they fit into a message.
func (h Helper) command() string {
	const most = 120
	text := strings.Join(append([]string{h.name()}, h.Args...), " ")
	if len(text) > most {
		text = text[:most] + "…"
	}
	return text
}

// said is the end of what a helper said, of its errors if there are any.
func said(a Answer) string {
	if text := LastLines(a.Err); text != "" {
		return text
	}
	return LastLines(a.Out)
}

// LastLines is the end of a program's output, for an error: the cause is often not in the very
// last line.
func LastLines(text string) string {
	const most = 5
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return strings.Join(lines[max(0, len(lines)-most):], "; ")
}

// killSession kills a process, and those of its session that have stayed in its group.
func killSession(leader *os.Process) error {
	if err := leader.Signal(syscall.Signal(0)); err != nil { // it has been waited for, and its pid may be another's
		return err
	}
	return syscall.Kill(-leader.Pid, syscall.SIGKILL)
}

func either(w io.Writer, kept *bounded) io.Writer {
	if w != nil {
		return w
	}
	return kept
}

// bounded keeps the beginning of what is written to it.
type bounded struct{ kept bytes.Buffer }

func (b *bounded) Write(p []byte) (int, error) {
	b.kept.Write(p[:min(len(p), maxOutput-b.kept.Len())])
	return len(p), nil
}
