// SPDX-License-Identifier: Apache-2.0

// Command sbom writes the bill of materials of what `make build` made: CycloneDX, as
// JSON. It is a module of its own, so that the product's modules do not grow by it.
//
// usage: go run . ROOT OUT
package main

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	cdx "github.com/CycloneDX/cyclonedx-go"
)

const product = "drayage"

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: sbom ROOT OUT")
		os.Exit(2)
	}
	if err := write(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, "sbom: error:", err)
		os.Exit(1)
	}
}

func write(root, out string) error {
	text, err := describe(root)
	if err != nil {
		return err
	}
	return os.WriteFile(out, text, 0o644)
}

// bill collects components and what each is made of, by reference.
type bill struct {
	components map[string]cdx.Component
	uses       map[string]map[string]bool
}

// add has a component used by another. Each is listed once.
func (b *bill) add(user string, c cdx.Component) {
	if _, known := b.components[c.BOMRef]; !known {
		b.components[c.BOMRef] = c
	}
	if b.uses[user] == nil {
		b.uses[user] = map[string]bool{}
	}
	b.uses[user][c.BOMRef] = true
}

// describe returns the bill of the files built in a source tree. The same files give
// the same bytes.
func describe(root string) ([]byte, error) {
	version, err := os.ReadFile(filepath.Join(root, "VERSION"))
	if err != nil {
		return nil, err
	}
	date, err := output(root, "scripts/build-date.sh")
	if err != nil {
		return nil, err
	}
	b := &bill{components: map[string]cdx.Component{}, uses: map[string]map[string]bool{}}
	release := strings.TrimSpace(string(version))
	if err := b.addFiles(root, release); err != nil {
		return nil, err
	}
	if err := b.addRecommended(filepath.Join(root, "debian/control")); err != nil {
		return nil, err
	}
	whole := own(product, release, cdx.ComponentTypeApplication)
	return encode(&cdx.Metadata{
		Timestamp: date + "T00:00:00Z",
		Authors:   &[]cdx.OrganizationalContact{{Name: "The Drayage Authors"}},
		Component: &whole,
	}, b)
}

// own is a component that this repository makes: the product, or a part of it.
func own(name, version string, kind cdx.ComponentType) cdx.Component {
	c := cdx.Component{
		BOMRef: product, Type: kind, Name: name, Version: version, Licenses: licences("Apache-2.0"),
		PackageURL: "pkg:generic/" + product + "@" + version,
	}
	if name != product {
		c.BOMRef += "/" + name
		c.PackageURL += "#" + name
	}
	return c
}

// addFiles adds each file that make install installs, and what it was made of.
func (b *bill) addFiles(root, release string) error {
	files, err := filepath.Glob(filepath.Join(root, "bin/*"))
	if err != nil {
		return err
	}
	if len(files) == 0 {
		return errors.New("bin/ is empty: run make build")
	}
	files = append(files, filepath.Join(root, "out/port-plain/libdray.so."+release))
	packages := &debian{root: root, owners: map[string]cdx.Component{}}
	modules := &goModules{root: root}
	for _, file := range files {
		name, _, library := strings.Cut(filepath.Base(file), ".so")
		kind := cdx.ComponentTypeApplication
		if library {
			kind = cdx.ComponentTypeLibrary
		}
		c := own(name, release, kind)
		b.add(product, c)
		parts, err := modules.of(file)
		if errors.Is(err, errNotGo) {
			parts, err = packages.of(file)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		for _, part := range parts {
			b.add(c.BOMRef, part)
		}
	}
	return nil
}

// encode gives the bill a serial number that follows from its content.
func encode(metadata *cdx.Metadata, b *bill) ([]byte, error) {
	bom := cdx.NewBOM()
	bom.Metadata = metadata
	var components []cdx.Component
	for _, ref := range slices.Sorted(maps.Keys(b.components)) {
		components = append(components, b.components[ref])
	}
	var dependencies []cdx.Dependency
	for _, user := range slices.Sorted(maps.Keys(b.uses)) {
		used := slices.Sorted(maps.Keys(b.uses[user]))
		dependencies = append(dependencies, cdx.Dependency{Ref: user, Dependencies: &used})
	}
	bom.Components, bom.Dependencies = &components, &dependencies
	text, err := encoded(bom)
	if err != nil {
		return nil, err
	}
	id := sha256.Sum256(text)
	id[6], id[8] = id[6]&0x0f|0x80, id[8]&0x3f|0x80 // version 8 of RFC 9562
	bom.SerialNumber = fmt.Sprintf("urn:uuid:%x-%x-%x-%x-%x", id[0:4], id[4:6], id[6:8], id[8:10], id[10:16])
	return encoded(bom)
}

func encoded(bom *cdx.BOM) ([]byte, error) {
	var text bytes.Buffer
	err := cdx.NewBOMEncoder(&text, cdx.BOMFileFormatJSON).SetPretty(true).SetEscapeHTML(false).EncodeVersion(bom, cdx.SpecVersion1_6)
	return text.Bytes(), err
}

// output runs a program in a folder, and returns what it prints.
func output(dir, name string, arguments ...string) (string, error) {
	command := exec.Command(name, arguments...)
	command.Dir = dir
	var says bytes.Buffer
	command.Stderr = &says
	out, err := command.Output()
	if err != nil {
		return "", fmt.Errorf("%s %s: %w: %s", name, strings.Join(arguments, " "), err, strings.TrimSpace(says.String()))
	}
	return strings.TrimSpace(string(out)), nil
}
