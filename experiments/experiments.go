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

// own are experiments of Drayage itself, without published figures.
//
//go:embed fronthaul.yaml queues.yaml
var own embed.FS

// Names are the published experiments, in alphabetical order.
func Names() []string { return namesIn(published) }

// BuiltIn are the published experiments, then our own.
func BuiltIn() []string { return append(Names(), namesIn(own)...) }

func namesIn(files embed.FS) []string {
	entries, err := files.ReadDir(".")
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

// Find is the built-in experiment with that name; nil: there is none.
func Find(name string) (*experiment.Experiment, error) {
	for _, files := range []embed.FS{published, own} {
		if !slices.Contains(namesIn(files), name) {
			continue
		}
		text, err := files.ReadFile(name + ".yaml")
		if err != nil {
			return nil, err
		}
		return experiment.Parse("experiments/"+name+".yaml", text)
	}
	return nil, nil
}
