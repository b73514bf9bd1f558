// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"golang.org/x/term"

	"github.com/drayage/dray/internal/function/runtime"
	"github.com/drayage/dray/internal/host"
)

// rawTerminal sets the terminal behind all three to raw mode, so that every key
// reaches a program in its own terminal; nil if one is none, or if this process is
// in the background. leave restores it.
func rawTerminal(in *os.File, out, errs io.Writer) (t *runtime.Terminal, leave func(), err error) {
	stop := func() {}
	_, outIs := terminalWidth(out)
	_, errsIs := terminalWidth(errs)
	if !outIs || !errsIs || !term.IsTerminal(int(in.Fd())) || !host.InForeground(in) {
		return nil, stop, nil
	}
	size, err := terminalSize(in)
	if err != nil {
		return nil, stop, fmt.Errorf("size of the terminal: %w", err)
	}
	before, err := term.MakeRaw(int(in.Fd()))
	if err != nil {
		return nil, stop, fmt.Errorf("terminal: %w", err)
	}
	changed, sizes, done := make(chan os.Signal, 1), make(chan runtime.Size), make(chan struct{})
	signal.Notify(changed, syscall.SIGWINCH)
	go func() {
		for {
			select {
			case <-changed:
			case <-done:
				return
			}
			if size, err := terminalSize(in); err == nil {
				select {
				case sizes <- size:
				case <-done:
					return
				}
			}
		}
	}()
	return &runtime.Terminal{Name: os.Getenv("TERM"), Size: size, Resized: sizes}, func() {
		signal.Stop(changed)
		close(done)
		_ = term.Restore(int(in.Fd()), before) // it may be gone by now
	}, nil
}

func terminalSize(f *os.File) (runtime.Size, error) {
	columns, rows, err := term.GetSize(int(f.Fd()))
	return runtime.Size{Columns: uint16(columns), Rows: uint16(rows)}, err
}
