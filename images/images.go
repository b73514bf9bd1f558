// SPDX-License-Identifier: Apache-2.0

// Package images holds the recipes of the images that Drayage builds, as files.
package images

import (
	"embed"
	"path"
	"slices"
	"strings"
)

//go:embed *.image
var recipes embed.FS

const suffix = ".image"

// Names are the images that there is a recipe for, in alphabetical order.
func Names() []string {
	entries, err := recipes.ReadDir(".")
	if err != nil {
		return nil // an embedded directory is always there
	}
	var names []string
	for _, e := range entries {
		names = append(names, strings.TrimSuffix(e.Name(), path.Ext(e.Name())))
	}
	slices.Sort(names)
	return names
}

// Text is the recipe of that name; false: there is none.
func Text(name string) ([]byte, bool) {
	if !slices.Contains(Names(), name) {
		return nil, false
	}
	text, err := recipes.ReadFile(name + suffix)
	return text, err == nil
}
