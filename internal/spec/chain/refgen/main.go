// SPDX-License-Identifier: Apache-2.0

// Command refgen writes docs/chain-reference.md from the JSON Schema of the
// chain file; `go generate ./internal/spec/chain` runs it.
package main

import (
	"fmt"
	"os"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "refgen:", err)
		os.Exit(1)
	}
}

// run writes the reference to the file that args names.
func run(args []string) error {
	if len(args) != 1 {
		return fmt.Errorf("usage: refgen FILE")
	}
	text, err := reference()
	if err != nil {
		return err
	}
	return os.WriteFile(args[0], text, 0o644)
}
