// SPDX-License-Identifier: Apache-2.0

// Package images holds the recipes of the images that Drayage builds, as files.
package images

import (
	"embed"
	"io/fs"
	"slices"
	"strings"

	"github.com/drayage/dray/dataplane/iq"
)

//go:embed *.image common fronthaul ran
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
		if name, ok := strings.CutSuffix(e.Name(), suffix); ok {
			names = append(names, name)
		}
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

// common is the folder of what several images have.
const common = "common"

// Files are those of the folder next to the recipe of that name, by their paths in it,
// with those that all such folders share; nil: there is no such folder.
func Files(name string) map[string][]byte {
	if info, err := fs.Stat(recipes, name); err != nil || !info.IsDir() {
		return nil
	}
	files := map[string][]byte{}
	for _, folder := range []string{common, name} {
		err := fs.WalkDir(recipes, folder, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			files[strings.TrimPrefix(path, folder+"/")], err = recipes.ReadFile(path)
			return err
		})
		if err != nil {
			return nil // embedded files can always be read
		}
	}
	if name == "ran" { // its radio is built with the header of a library of ours
		files["radio/"+iq.HeaderName] = iq.Header
	}
	return files
}
