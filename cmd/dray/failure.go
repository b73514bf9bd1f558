// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"io/fs"
	"os"
	"syscall"

	"github.com/drayage/dray/internal/cluster"
	"github.com/drayage/dray/internal/host"
)

// fixableError is an error with the command that fixes it.
type fixableError struct {
	Text, Fix string
}

func (e *fixableError) Error() string { return e.Text + "; try: " + e.Fix }

// failure is the document that a failed command prints with --json.
type failure struct {
	Error string `json:"error"`
	Fix   string `json:"fix,omitempty"`
	Exit  int    `json:"exit"`
}

func failureOf(err error) failure {
	f := failure{Error: err.Error(), Exit: codeOf(err)}
	var fixable *fixableError
	var unsupported *host.Unsupported
	var refused *cluster.Error
	switch {
	case errors.As(err, &fixable):
		f.Fix = fixable.Fix
		if err == error(fixable) { // else there is more to say than its text
			f.Error = fixable.Text
		}
	case errors.As(err, &unsupported):
		f.Fix = unsupported.Fix
	case errors.As(err, &refused):
		f.Fix = refused.Fix
		if err == error(refused) {
			f.Error = refused.Text
		}
	}
	return f
}

// failed prints the error document, if needed, and returns the error left for
// standard error. A command prints one document: a failure after its own is
// reported as text.
func (a *app) failed(err error) error {
	err = withoutClosedOutput(err)
	if err == nil || !a.json || a.printed || silent(err) {
		return err
	}
	if a.printJSON(schemaError, failureOf(err)) != nil {
		return err
	}
	return &codeError{Code: codeOf(err)}
}

// codeOf is an error's exit code.
func codeOf(err error) int {
	var coded *codeError
	switch {
	case err == nil:
		return exitOK
	case errors.As(err, &coded):
		return coded.Code
	}
	return exitError
}

// silent reports whether an error is only an exit code.
func silent(err error) bool {
	coded, ok := err.(*codeError)
	return ok && coded.Err == nil
}

// withoutClosedOutput removes the error of a closed standard output. `head` exits
// when it has enough lines, so that is no failure.
func withoutClosedOutput(err error) error {
	if all, several := err.(interface{ Unwrap() []error }); several && closedOutput(err) {
		var left []error
		for _, e := range all.Unwrap() {
			left = append(left, withoutClosedOutput(e))
		}
		return errors.Join(left...)
	}
	if closedOutput(err) {
		return nil
	}
	return err
}

// closedOutput reports whether standard output had no reader.
func closedOutput(err error) bool {
	var path *fs.PathError
	return errors.As(err, &path) && path.Path == os.Stdout.Name() && errors.Is(path.Err, syscall.EPIPE)
}
