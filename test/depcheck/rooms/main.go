// SPDX-License-Identifier: Apache-2.0

// Command rooms prints this module's rooms and their imports, draws them to the
// given file, and fails if a rule is broken.
package main

import (
	"bytes"
	"fmt"
	"io"
	"os"

	"github.com/drayage/dray/test/depcheck"
)

func main() {
	if err := run(os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "rooms:", err)
		os.Exit(1)
	}
}

func run(args []string, out io.Writer) error {
	if len(args) != 1 {
		return fmt.Errorf("usage: rooms FILE.svg")
	}
	pkgs, err := depcheck.Load(".", depcheck.Module)
	if err != nil {
		return err
	}
	picture := depcheck.Repository.Draw(pkgs)
	if err := picture.Text(out); err != nil {
		return err
	}
	var svg bytes.Buffer
	if err := picture.SVG(&svg); err != nil {
		return err
	}
	if err := os.WriteFile(args[0], svg.Bytes(), 0o644); err != nil {
		return err
	}
	if broken := depcheck.Repository.Check(pkgs); len(broken) > 0 {
		return fmt.Errorf("%d imports or calls break a rule; the first: %s", len(broken), broken[0])
	}
	return nil
}
