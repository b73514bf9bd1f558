// SPDX-License-Identifier: Apache-2.0

// Command dray gives every function of a containerised user plane a virtual port
// and puts the fastest permitted transport behind it. It proves by measurement that
// each link meets its requirements.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/drayage/dray/internal/host"
	"github.com/drayage/dray/internal/measure/runner"
	"github.com/drayage/dray/internal/spec/layout"
)

func main() {
	if err := errors.Join(host.CloseInheritedOnExec(), host.CompletePath()); err != nil {
		os.Exit(exitCode(err, os.Stderr))
	}
	program, left := run, leftByDray
	if isKubectl(os.Args[0]) {
		program, left = runKubectl, leftByKubectl
	}
	ctx, stop := interruptible(left)
	err := program(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(exitCode(err, os.Stderr))
}

// signalError is the signal that makes dray end.
type signalError struct{ syscall.Signal }

func (e signalError) Error() string { return "signal: " + e.Signal.String() }

// What to do about what a program leaves that is interrupted twice.
const (
	leftByDray    = "`dray gc` removes what is left"
	leftByKubectl = "`kubectl delete` with the same -f or -k removes what `kubectl dray run` created"
)

// interruptible ends its context at a terminating signal, so that dray removes what
// it made. A second Ctrl-C ends dray at once, and says how to remove the rest.
func interruptible(left string) (context.Context, context.CancelFunc) {
	signals := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) { // nohup
		signals = append(signals, syscall.SIGHUP)
	}
	ctx, cancel := context.WithCancelCause(context.Background())
	caught := make(chan os.Signal, 1)
	signal.Notify(caught, signals...)
	go func() {
		s, ok := (<-caught).(syscall.Signal)
		if !ok {
			return
		}
		cancel(signalError{s})
		for again := range caught {
			if again == os.Interrupt {
				fmt.Fprintln(os.Stderr, "dray: interrupted twice, and ended at once: "+left)
				os.Exit(128 + int(syscall.SIGINT))
			}
		}
	}()
	// A reader that exits, such as head, must not kill dray in mid-step.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	return ctx, func() { cancel(nil) }
}

// signalCode is the exit code of a command that a signal ended, as in shells.
func signalCode(ctx context.Context) int {
	var s signalError
	if errors.As(context.Cause(ctx), &s) {
		return 128 + int(s.Signal)
	}
	return exitError
}

// run is the whole program.
func run(ctx context.Context, args []string, out, errOut io.Writer) error {
	return execute(ctx, newRoot, args, out, errOut)
}

// execute runs a command of the tree that newRoot makes.
func execute(ctx context.Context, newRoot func(*app) *cobra.Command, args []string, out, errOut io.Writer) error {
	a := &app{out: out, err: errOut, argv: args}
	root := newRoot(a)
	root.SetArgs(args)
	root.SetOut(out)
	root.SetErr(errOut)
	return a.failed(ended(ctx, root.ExecuteContext(ctx)))
}

// ended gives a signalled command's error the signal's exit code.
func ended(ctx context.Context, err error) error {
	var coded *codeError
	if err == nil || ctx.Err() == nil || errors.As(err, &coded) {
		return err
	}
	if !errors.Is(err, runner.ErrInterrupted) {
		err = fmt.Errorf("interrupted: %w", err)
	}
	return &codeError{signalCode(ctx), err}
}

// Exit codes, as `dray --help` lists them.
const (
	exitOK            = 0
	exitError         = 1
	exitUsage         = 2
	exitInfeasible    = 3
	exitMissed        = 4
	exitNotMeasurable = 5
)

// codeError is an error with an exit code. A nil Err prints nothing.
type codeError struct {
	Code int
	Err  error
}

func (e *codeError) Error() string {
	if e.Err == nil {
		return fmt.Sprintf("exit status %d", e.Code)
	}
	return e.Err.Error()
}

func (e *codeError) Unwrap() error { return e.Err }

func usageError(format string, args ...any) error {
	return &codeError{exitUsage, fmt.Errorf(format, args...)}
}

// exitCode prints the error and returns the exit code.
func exitCode(err error, errOut io.Writer) int {
	code := codeOf(err)
	switch {
	case err == nil || silent(err):
	default:
		fmt.Fprintln(errOut, "dray:", layout.PlainLines(err.Error()))
	}
	return code
}
