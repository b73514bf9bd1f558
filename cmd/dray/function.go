// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/drayage/dray/internal/function/runtime"
	"github.com/drayage/dray/internal/host"
	"github.com/drayage/dray/internal/node"
)

func (a *app) execCommand() *cobra.Command {
	var env []string
	cmd := &cobra.Command{
		Use:   "exec [--env NAME=VALUE] CHAIN FUNCTION [--] PROGRAM [ARG...]",
		Short: "Run a program inside a function",
		Long: "Run a program inside a function, under the function's own limits and isolation, and return its exit code.\n" +
			"If standard input, output and error are a terminal and dray is in the foreground, the program gets a\n" +
			"terminal of the same size, except in a virtual machine.",
		Example: "  dray exec f1-split du -- ip address\n  dray exec f1-split du sh\n  dray exec --env LANG=C.UTF-8 f1-split du env",
		Args:    args(cobra.MinimumNArgs(3)),

		DisableFlagsInUseLine: true,
		RunE: func(cmd *cobra.Command, argv []string) error {
			if argv[2] == "--" {
				argv = slices.Delete(argv, 2, 3)
			}
			if len(argv) < 3 {
				return usageError("name the program to run; usage: %s", cmd.UseLine())
			}
			live, err := a.open(argv[0])
			if err != nil {
				return err
			}
			variables, err := variables(env)
			if err != nil {
				return err
			}
			return a.exec(cmd.Context(), live, argv[1], variables, argv[2:])
		},
	}
	cmd.Flags().StringArrayVarP(&env, "env", "e", nil, "add a variable, `NAME=VALUE`, to the program's environment; repeat it for more")
	cmd.Flags().SetInterspersed(false) // the rest is the program's
	return cmd
}

// variables reads NAME=VALUE texts. NAME alone has the value that it has here, if it has one, as
// with docker exec.
func variables(texts []string) (map[string]string, error) {
	all := map[string]string{}
	for _, text := range texts {
		name, value, given := strings.Cut(text, "=")
		if name == "" || strings.ContainsRune(text, 0) {
			return nil, usageError("--env %q: write NAME=VALUE", text)
		}
		if !given {
			if value, given = os.LookupEnv(name); !given {
				continue
			}
		}
		all[name] = value
	}
	return all, nil
}

func (a *app) exec(ctx context.Context, live *node.Live, function string, env map[string]string, argv []string) error {
	stdio := runtime.Stdio{Stdin: os.Stdin, Stdout: a.out, Stderr: a.err}
	if live.GivesTerminal(function) {
		terminal, leave, err := rawTerminal(os.Stdin, a.out, a.err)
		if err != nil {
			return err
		}
		defer leave()
		stdio.Terminal = inTerminal(terminal, env)
	}
	code, err := live.ExecWith(ctx, function, env, argv, stdio)
	if err != nil || code == 0 {
		return err
	}
	return &codeError{Code: code}
}

// inTerminal is the terminal of a program with these variables: TERM may be among them.
func inTerminal(t *runtime.Terminal, env map[string]string) *runtime.Terminal {
	if name, given := env["TERM"]; given && t != nil {
		t.Name = name
	}
	return t
}

func (a *app) logsCommand() *cobra.Command {
	var follow bool
	cmd := &cobra.Command{
		Use:   "logs CHAIN FUNCTION",
		Short: "Print a function's standard output and standard error",
		Long: "Print a function's standard output and standard error. On a terminal, control characters become ?;\n" +
			"in a pipe nothing is changed. If a chain did not come up, the logs of its functions stay until the next\n" +
			"`dray up` of that name, or `dray gc`.",
		Example: "  dray logs f1-split du --follow",
		Args:    args(cobra.ExactArgs(2)),
		RunE: func(cmd *cobra.Command, argv []string) error {
			live, err := a.open(argv[0])
			if err != nil {
				return a.printFailedLog(cmd.Context(), argv[0], argv[1], err)
			}
			if live.Chain.Function(argv[1]) == nil {
				return fmt.Errorf("chain %s has no function %q", argv[0], argv[1])
			}
			return a.printLog(cmd.Context(), live.LogFile(argv[1]), follow)
		},
	}
	cmd.Flags().BoolVarP(&follow, "follow", "f", false, "keep printing new output, until interrupted")
	return cmd
}

// printFailedLog prints a function's log from when its chain failed to come up. If there is
// none, it returns the error that the chain is not up.
func (a *app) printFailedLog(ctx context.Context, chain, function string, down error) error {
	n, err := a.node()
	if err != nil {
		return err
	}
	path := n.FailedLog(chain, function)
	if path == "" {
		return down
	}
	a.warn(fmt.Errorf("chain %s did not come up: this is what its function printed", chain))
	return a.printLog(ctx, path, false)
}

// printLog copies a log; with follow, later lines as well.
func (a *app) printLog(ctx context.Context, path string, follow bool) error {
	f, err := host.OpenRegular(path, os.O_RDONLY)
	if errors.Is(err, fs.ErrNotExist) && !follow {
		return nil // nothing is written yet
	}
	for errors.Is(err, fs.ErrNotExist) {
		if host.Sleep(ctx, logPoll) != nil {
			return nil
		}
		f, err = host.OpenRegular(path, os.O_RDONLY)
	}
	if err != nil {
		return err
	}
	defer func() { f.Close() }()
	out := copier(a.out)
	for {
		if _, err := io.Copy(out, f); err != nil {
			return err
		}
		if !follow || host.Sleep(ctx, logPoll) != nil {
			return nil
		}
		next, err := rotated(f, path)
		if err != nil {
			return err
		}
		if next == nil {
			continue
		}
		if _, err := io.Copy(out, f); err != nil { // lines before the rotation
			return errors.Join(err, next.Close())
		}
		f.Close()
		f = next
	}
}

// logPoll is how often to look at a log that is followed.
const logPoll = 100 * time.Millisecond

// rotated opens the file now at path if it is not f; else it returns nil.
func rotated(f *os.File, path string) (*os.File, error) {
	now, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil // between two files
	}
	if err != nil {
		return nil, err
	}
	old, err := f.Stat()
	if err != nil || os.SameFile(now, old) {
		return nil, err
	}
	return host.OpenRegular(path, os.O_RDONLY)
}
