// SPDX-License-Identifier: Apache-2.0

package main

import (
	"io"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/spf13/cobra"
)

// Every chain file that a help text names is among the examples.
func TestHelpNamesFilesThatExist(t *testing.T) {
	named := regexp.MustCompile(`examples/[a-zA-Z0-9._/-]*\.yaml`)
	eachCommand(newRoot(&app{out: io.Discard, err: io.Discard}), func(cmd *cobra.Command) {
		for _, file := range named.FindAllString(cmd.Long+cmd.Example, -1) {
			if _, err := os.Stat(filepath.Join("../..", file)); err != nil {
				t.Errorf("%s --help: %v", cmd.CommandPath(), err)
			}
		}
	})
}

func eachCommand(cmd *cobra.Command, visit func(*cobra.Command)) {
	visit(cmd)
	for _, sub := range cmd.Commands() {
		eachCommand(sub, visit)
	}
}
