// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/drayage/dray/internal/spec/layout"
)

// Widths of help: long lines of prose are hard to read.
const (
	helpWidth    = 80 // if there is no terminal
	helpWidthMax = 100
)

// fitHelp wraps the help of all commands to the terminal.
func (a *app) fitHelp(root *cobra.Command) {
	write := root.HelpFunc()
	root.SetHelpFunc(func(cmd *cobra.Command, argv []string) {
		var b bytes.Buffer
		cmd.SetOut(&b)
		write(cmd, argv)
		cmd.SetOut(a.out)
		width := a.width()
		if width == 0 {
			width = helpWidth
		}
		fmt.Fprint(a.out, layout.Prose(b.String(), min(width, helpWidthMax)))
	})
}
