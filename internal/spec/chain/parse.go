// SPDX-License-Identifier: Apache-2.0

package chain

import (
	"fmt"
	"io"
	"os"

	"go.yaml.in/yaml/v3"
)

// Load reads and parses a chain file; see ReadFile and Parse.
func Load(path string) (*Chain, error) {
	data, err := ReadFile(path)
	if err != nil {
		return nil, err
	}
	return Parse(path, data)
}

// ReadFile reads a chain file whole, and refuses one that is too large to be
// one without reading it.
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
	if info.Size() > maxFileSize {
		return nil, Errors{tooLarge(path)}
	}
	// A pipe or device has no size, so the reading is bounded too.
	data, err := io.ReadAll(io.LimitReader(f, maxFileSize+1))
	if err != nil {
		return nil, fmt.Errorf("chain file: %w", err)
	}
	if len(data) > maxFileSize {
		return nil, Errors{tooLarge(path)}
	}
	return data, nil
}

// Parse reads and validates a chain; file is the name that errors print. The
// error, if any, is an Errors that holds every fault, by position.
func Parse(file string, data []byte) (*Chain, error) {
	d, root, fault := open(file, data, Kind)
	if fault != nil {
		return nil, Errors{fault}
	}
	c := d.chain(root)
	if errs := d.result(); errs != nil {
		return nil, errs
	}
	return c, nil
}

// open reads the one document of a file that should be of that kind.
func open(file string, data []byte, kind string) (*decoder, *yaml.Node, *Error) {
	if len(data) > maxFileSize {
		return nil, nil, tooLarge(file)
	}
	root, fault := readYAML(file, data, kind)
	if fault == nil {
		fault = checkBounds(file, root)
	}
	return &decoder{file: file, kind: kind}, root, fault
}

// chain decodes the document. A document that is not a chain of this version
// is not judged by this version's rules.
func (d *decoder) chain(root *yaml.Node) *Chain {
	c := &Chain{File: d.file, Policy: Policy{OnInfeasible: Refuse}}
	d.checkVersion(root)
	if len(d.errs) > 0 {
		return c
	}
	if object(d, root, "a chain", chainFields, c) != nil {
		check(d, c)
	}
	return c
}

func tooLarge(file string) *Error {
	return &Error{Pos: Position{File: file},
		Text: fmt.Sprintf("the file is larger than the limit of %s", Bytes(maxFileSize)),
		Fix:  "is it a chain file? Split a chain that is this large into several"}
}
