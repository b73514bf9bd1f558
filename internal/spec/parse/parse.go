// SPDX-License-Identifier: Apache-2.0

// Package parse reads the YAML files that users write. It decodes them by tables of
// fields, and reports every fault with its position and its fix.
package parse

import (
	"fmt"
	"io"
	"os"

	"go.yaml.in/yaml/v3"
)

// APIVersion is the version of the file formats that this program reads.
const APIVersion = "drayage/v1"

// ReadFile reads a whole file. It refuses one that is too large without reading it.
func ReadFile(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("chain file: %w", err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, fmt.Errorf("chain file: %w", err)
	}
	if info.IsDir() {
		return nil, fmt.Errorf("chain file: %s is a directory; name the file in it", path)
	}
	if info.Size() > MaxSize {
		return nil, Errors{tooLarge(path)}
	}
	// A pipe or device has no size, so limit the read as well.
	data, err := io.ReadAll(io.LimitReader(f, MaxSize+1))
	if err != nil {
		return nil, fmt.Errorf("chain file: %w", err)
	}
	if len(data) > MaxSize {
		return nil, Errors{tooLarge(path)}
	}
	return data, nil
}

// Open reads the only document of a file that should be of that kind.
func Open(file string, data []byte, kind string) (*Decoder, *yaml.Node, *Error) {
	if len(data) > MaxSize {
		return nil, nil, tooLarge(file)
	}
	root, fault := ReadYAML(file, data, kind)
	if fault == nil {
		fault = checkBounds(file, root)
	}
	return &Decoder{file: file, kind: kind}, root, fault
}

// Tree reads the only document of a file of another format. Its aliases are safe to
// follow.
func Tree(file string, data []byte) (*yaml.Node, *Error) {
	if len(data) > MaxSize {
		return nil, &Error{Pos: Position{File: file}, Text: "the file is larger than the limit of 1Mi", Fix: "split it"}
	}
	root, fault := ReadYAML(file, data, "")
	if fault == nil {
		fault = checkBounds(file, root)
	}
	return root, fault
}

func tooLarge(file string) *Error {
	return &Error{Pos: Position{File: file},
		Text: fmt.Sprintf("the file is larger than the limit of %s", "1Mi"),
		Fix:  "is it a chain file? Split a chain that is this large into several"}
}
