// SPDX-License-Identifier: Apache-2.0

// Package experiments holds the files that say what to measure.
package experiments

import (
	"embed"
	"path"
	"slices"
	"strings"

	"github.com/drayage/dray/internal/spec/experiment"
)

//go:embed bench-quick.yaml
var benchQuick []byte

// BenchQuick is the matrix of `dray bench quick`.
func BenchQuick() []byte { return append([]byte(nil), benchQuick...) }

//go:embed k17-*.yaml i15-*.yaml v19-*.yaml n16.yaml m15-*.yaml
var published embed.FS

// Names are the published experiments, in alphabetical order.
func Names() []string {
	entries, err := published.ReadDir(".")
	if err != nil {
		return nil // an embedded directory always exists
	}
	var names []string
	for _, e := range entries {
		names = append(names, strings.TrimSuffix(e.Name(), path.Ext(e.Name())))
	}
	slices.Sort(names)
	return names
}

// Published is the experiment with that name; nil: there is none.
func Published(name string) (*experiment.Experiment, error) {
	if !slices.Contains(Names(), name) {
		return nil, nil
	}
	text, err := published.ReadFile(name + ".yaml")
	if err != nil {
		return nil, err
	}
	return experiment.Parse("experiments/"+name+".yaml", text)
}
