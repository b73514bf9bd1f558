// SPDX-License-Identifier: Apache-2.0

package image

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"maps"
	"slices"
)

// inputs identify what an image is made of.
type inputs struct {
	key     string // recipe, files and programs: a change causes a rebuild
	results string // what the build of the sources depends on, besides them; empty: there are no sources
	source  string // the sources that the recipe's variable names; empty: it names none
}

func inputsOf(r *Recipe) (*inputs, error) {
	in := &inputs{}
	if r.Source != nil {
		source, err := r.Source.named()
		if err != nil {
			return nil, err
		}
		in.source, in.results = source, r.resultsKey()
	}
	sum := sha256.New()
	sum.Write(r.text)
	fmt.Fprintln(sum, left, ofTheBuild, codename("/etc/os-release"))
	for _, p := range r.Programs {
		path, err := ownProgram(p.Name)
		if err != nil {
			return nil, err
		}
		if err := addFile(sum, path); err != nil {
			return nil, err
		}
	}
	for _, p := range r.Scripts {
		addText(sum, p.Name, r.Files[p.Name])
	}
	fmt.Fprint(sum, in.results)
	in.key = hex.EncodeToString(sum.Sum(nil))
	return in, nil
}

// resultsKey identifies what the build of the sources depends on. Drayage's programs
// and scripts are not part of it: the compiler does not see them.
func (r *Recipe) resultsKey() string {
	sum := sha256.New()
	fmt.Fprintln(sum, codename("/etc/os-release"), r.Source.Commit)
	for _, p := range slices.Concat(r.Packages, r.BuildPackages) {
		fmt.Fprintln(sum, p.Name)
	}
	for _, path := range slices.Sorted(maps.Keys(r.Files)) {
		if !slices.ContainsFunc(r.Scripts, func(p Part) bool { return p.Name == path }) {
			addText(sum, path, r.Files[path])
		}
	}
	return hex.EncodeToString(sum.Sum(nil))
}

func addText(sum hash.Hash, path string, text []byte) {
	fmt.Fprintf(sum, "%q %d\n", path, len(text))
	sum.Write(text)
}
