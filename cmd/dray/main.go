// SPDX-License-Identifier: Apache-2.0

// Command dray gives every function of a containerised user plane a virtual
// port, puts the fastest permitted transport behind it, and proves by
// measurement that each link meets what it was asked for.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
)

// version is set by the build.
var version = "devel"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	context.AfterFunc(ctx, stop) // a second signal ends dray at once, and leaves the rest to gc
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(exitCode(err, os.Stderr))
}

// run is the whole program.
func run(ctx context.Context, args []string, out, errOut io.Writer) error {
	root := newRoot(&app{out: out, err: errOut})
	root.SetArgs(args)
	root.SetOut(out)
	root.SetErr(errOut)
	return root.ExecuteContext(ctx)
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

func exitCode(err error, errOut io.Writer) int {
	var coded *codeError
	switch {
	case err == nil:
		return exitOK
	case errors.As(err, &coded):
		if coded.Err != nil {
			fmt.Fprintln(errOut, "dray:", coded.Err)
		}
		return coded.Code
	case errors.Is(err, context.Canceled):
		fmt.Fprintln(errOut, "dray: interrupted; everything was removed again")
		return exitError
	}
	fmt.Fprintln(errOut, "dray:", err)
	return exitError
}
