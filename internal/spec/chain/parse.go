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
	blank := &Chain{File: file, Policy: Policy{OnInfeasible: Refuse}}
	return parse.Document(file, data, Kind, "a chain", chainFields, blank,
		func(d *parse.Decoder, c *Chain, _ map[string]*yaml.Node) { check(d, c) })
}
