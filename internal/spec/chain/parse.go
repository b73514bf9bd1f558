// SPDX-License-Identifier: Apache-2.0

package chain

import (
	"github.com/drayage/dray/internal/spec/parse"
	"go.yaml.in/yaml/v3"
)

// Load reads and parses a chain file; see ReadFile and Parse.
func Load(path string) (*Chain, error) {
	data, err := parse.ReadFile(path)
	if err != nil {
		return nil, err
	}
	return Parse(path, data)
}

// Parse reads and validates a chain; file is the name that errors print. The
// error, if any, is an Errors that holds every fault, by position.
func Parse(file string, data []byte) (*Chain, error) {
	d, root, fault := parse.Open(file, data, Kind)
	if fault != nil {
		return nil, parse.Errors{fault}
	}
	c := decodeChain(d, root)
	if errs := d.Result(); errs != nil {
		return nil, errs
	}
	return c, nil
}

// decodeChain decodes the document. It does not apply this version's rules to a
// document of another kind or version.
func decodeChain(d *parse.Decoder, root *yaml.Node) *Chain {
	c := &Chain{File: d.File(), Policy: Policy{OnInfeasible: Refuse}}
	d.CheckVersion(root)
	if d.Failed() {
		return c
	}
	if parse.Object(d, root, "a chain", chainFields, c) != nil {
		check(d, c)
	}
	return c
}
