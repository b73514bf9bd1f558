// SPDX-License-Identifier: Apache-2.0

package main

import (
	"debug/buildinfo"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"

	cdx "github.com/CycloneDX/cyclonedx-go"
)

// errNotGo reports a file that the Go linker did not make.
var errNotGo = errors.New("not a Go program")

// goModules knows where the source of each module is.
type goModules struct {
	root    string
	folders map[string]string
}

// of returns the modules that a program was linked from, as the program says itself.
func (g *goModules) of(file string) ([]cdx.Component, error) {
	info, err := buildinfo.ReadFile(file)
	if err != nil {
		return nil, errNotGo
	}
	if g.folders == nil {
		if err := g.find(); err != nil {
			return nil, err
		}
	}
	version := strings.TrimPrefix(info.GoVersion, "go")
	parts := []cdx.Component{{
		BOMRef: "pkg:golang/std@" + version, Type: cdx.ComponentTypeLibrary, Name: "std", Version: version,
		Description: "Go's standard library and runtime", Licenses: licences("BSD-3-Clause"), PackageURL: "pkg:golang/std@" + version,
	}}
	for _, m := range info.Deps {
		part, err := g.component(m)
		if err != nil {
			return nil, err
		}
		parts = append(parts, part)
	}
	return parts, nil
}

func (g *goModules) component(m *debug.Module) (cdx.Component, error) {
	if m.Replace != nil {
		return cdx.Component{}, fmt.Errorf("%s is replaced, which is not described", m.Path)
	}
	sum, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(m.Sum, "h1:"))
	if err != nil {
		return cdx.Component{}, fmt.Errorf("%s: sum %q: %w", m.Path, m.Sum, err)
	}
	ids, err := licencesOf(g.folders[m.Path])
	if err != nil {
		return cdx.Component{}, fmt.Errorf("%s: %w", m.Path, err)
	}
	url := "pkg:golang/" + m.Path + "@" + m.Version
	return cdx.Component{
		BOMRef: url, Type: cdx.ComponentTypeLibrary, Name: m.Path, Version: m.Version, Scope: cdx.ScopeRequired, PackageURL: url,
		// The checksum of go.sum, which is that of a list of the module's files.
		Hashes:   &[]cdx.Hash{{Algorithm: cdx.HashAlgoSHA256, Value: hex.EncodeToString(sum)}},
		Licenses: licences(ids...),
	}, nil
}

func (g *goModules) find() error {
	list, err := output(g.root, "go", "list", "-deps", "-f", "{{with .Module}}{{.Path}}\t{{.Dir}}{{end}}", "./cmd/...")
	if err != nil {
		return err
	}
	g.folders = map[string]string{}
	for _, line := range strings.Split(list, "\n") {
		if path, folder, found := strings.Cut(line, "\t"); found {
			g.folders[path] = folder
		}
	}
	return nil
}

// marks are sentences that occur in one licence each.
var marks = []struct{ id, sentence string }{
	{"Apache-2.0", "www.apache.org/licenses"},
	{"MIT", "permission is hereby granted, free of charge"},
	{"BSD-3-Clause", "may be used to endorse or promote products derived from"},
	{"BSD-2-Clause", "redistributions in binary form must reproduce the above copyright notice"},
}

// licencesOf reads the licence file in a module's folder.
func licencesOf(folder string) ([]string, error) {
	files, err := filepath.Glob(filepath.Join(folder, "LICENSE*"))
	if err != nil || len(files) != 1 {
		return nil, fmt.Errorf("not one licence file in %q but %q", folder, files)
	}
	text, err := os.ReadFile(files[0])
	if err != nil {
		return nil, err
	}
	ids := recognise(string(text))
	if len(ids) == 0 {
		return nil, fmt.Errorf("%s is not a known licence", files[0])
	}
	return ids, nil
}

func recognise(text string) (ids []string) {
	text = strings.ToLower(strings.Join(strings.Fields(text), " "))
	for _, mark := range marks {
		if !strings.Contains(text, mark.sentence) {
			continue
		}
		// The third clause is what one has more than the other.
		if mark.id == "BSD-2-Clause" && strings.Contains(text, marks[2].sentence) {
			continue
		}
		ids = append(ids, mark.id)
	}
	return ids
}

// licences are all that apply.
func licences(ids ...string) *cdx.Licenses {
	if len(ids) == 1 {
		return &cdx.Licenses{{License: &cdx.License{ID: ids[0]}}}
	}
	return &cdx.Licenses{{Expression: strings.Join(ids, " AND ")}}
}
