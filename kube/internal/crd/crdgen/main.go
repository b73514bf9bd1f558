// SPDX-License-Identifier: Apache-2.0

// Command crdgen writes the CustomResourceDefinition of Chain to a file.
package main

import (
	"fmt"
	"os"

	"github.com/drayage/dray/kube/internal/crd"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: crdgen FILE")
		os.Exit(2)
	}
	text, err := crd.YAML()
	if err == nil {
		err = os.WriteFile(os.Args[1], text, 0o644)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "crdgen:", err)
		os.Exit(1)
	}
}
