// SPDX-License-Identifier: Apache-2.0

package runtime

import (
	"errors"
	"fmt"
)

// ErrNothingToStart is returned by Start if the function has no command, or its
// runtime is external.
var ErrNothingToStart = errors.New("nothing to start")

// GoneError is what a Checker returns that knows that the function has left the namespace of
// its ports.
type GoneError struct {
	Err error
	// Ended: the function is external, and there is no other namespace of it. Only its operator
	// can start it again.
	Ended bool
}

func (e *GoneError) Error() string { return e.Err.Error() }

// Unwrap returns how the Checker knows.
func (e *GoneError) Unwrap() error { return e.Err }

// CommandError is a command that cannot be run in its function.
type CommandError struct {
	Function string
	Command  string // the program, as the chain file names it
	Reason   string
}

func (e *CommandError) Error() string {
	return fmt.Sprintf("function %s: cannot run %q: %s (the program is looked up inside the function, in the PATH of its env)", e.Function, e.Command, e.Reason)
}
