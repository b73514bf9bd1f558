// SPDX-License-Identifier: Apache-2.0

// Command refgen generates docs/chain-reference.md and the JSON Schemas in docs/schema
// from the decoder tables. `go generate ./internal/spec/...` runs it.
package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/drayage/dray/internal/spec/chain"
	"github.com/drayage/dray/internal/spec/experiment"
	"github.com/drayage/dray/internal/spec/matrix"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "refgen:", err)
		os.Exit(1)
	}
}

// run writes every file below the documents folder in args.
func run(args []string) error {
	if len(args) != 1 {
		return fmt.Errorf("usage: refgen DOCS")
	}
	files, err := generated()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Join(args[0], "schema"), 0o755); err != nil {
		return err
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(args[0], name), text, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// generated returns the files by their paths below the documents folder.
func generated() (map[string][]byte, error) {
	text, err := reference()
	return map[string][]byte{
		"chain-reference.md":            text,
		"schema/chain.schema.json":      chain.Schema(),
		"schema/bench.schema.json":      matrix.Schema(),
		"schema/experiment.schema.json": experiment.Schema(),
	}, err
}
