// SPDX-License-Identifier: Apache-2.0

package main

import (
	"debug/elf"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	cdx "github.com/CycloneDX/cyclonedx-go"
)

// debian knows the package of each file on this machine.
type debian struct {
	root    string
	release []string // ID and VERSION_ID
	owners  map[string]cdx.Component
}

// of returns the packages that a program or library in C was linked from.
func (d *debian) of(file string) ([]cdx.Component, error) {
	f, err := elf.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	needed, err := f.ImportedLibraries()
	if err != nil {
		return nil, err
	}
	if len(needed) == 0 { // static
		needed = []string{"libc.a", "libgcc.a"}
	}
	if filepath.Base(file) == "libdray_sctp.so" {
		needed = append(needed, "libusrsctp.a") // compiled in
	}
	for _, library := range needed {
		if strings.HasPrefix(library, "librte_eal.") {
			needed = append(needed, "librte_eal.so") // of the headers, whose functions are compiled in
		}
	}
	var parts []cdx.Component
	for _, library := range needed {
		part, known := d.owners[library]
		if !known {
			if part, err = d.owner(library); err != nil {
				return nil, err
			}
			d.owners[library] = part
		}
		parts = append(parts, part)
	}
	return parts, nil
}

// owner is the package of a library that the compiler finds.
func (d *debian) owner(library string) (cdx.Component, error) {
	found, err := output(d.root, "gcc", "-print-file-name="+library)
	if err != nil {
		return cdx.Component{}, err
	}
	if !filepath.IsAbs(found) {
		return cdx.Component{}, fmt.Errorf("gcc does not find %s", library)
	}
	// Debian 12 lists some files below /lib, where /lib is a link to /usr/lib.
	path := filepath.Clean(found)
	says, err := output(d.root, "dpkg", "-S", path)
	if err != nil {
		if says, err = output(d.root, "dpkg", "-S", strings.TrimPrefix(path, "/usr")); err != nil {
			return cdx.Component{}, err
		}
	}
	name, _, _ := strings.Cut(says, ": ")
	return d.installed(name)
}

// installed is a package of this machine, with its version.
func (d *debian) installed(name string) (cdx.Component, error) {
	says, err := output(d.root, "dpkg-query", "-W", "-f", "${Package} ${Version} ${Architecture}", name)
	if err != nil {
		return cdx.Component{}, err
	}
	fields := strings.Fields(says)
	if len(fields) != 3 {
		return cdx.Component{}, fmt.Errorf("dpkg-query says %q of %s", says, name)
	}
	if d.release == nil {
		if d.release, err = release("/etc/os-release"); err != nil {
			return cdx.Component{}, err
		}
	}
	version := strings.ReplaceAll(url.PathEscape(fields[1]), "+", "%2B")
	ref := fmt.Sprintf("pkg:deb/%s/%s@%s?arch=%s&distro=%s-%s", d.release[0], fields[0], version, fields[2], d.release[0], d.release[1])
	return cdx.Component{
		BOMRef: ref, Type: cdx.ComponentTypeLibrary, Name: fields[0], Version: fields[1], Scope: cdx.ScopeRequired, PackageURL: ref,
	}, nil
}

func release(path string) ([]string, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var values []string
	for _, key := range []string{"ID", "VERSION_ID"} {
		m := regexp.MustCompile(`(?m)^` + key + `="?([^"\n]*)"?$`).FindSubmatch(text)
		if m == nil {
			return nil, fmt.Errorf("%s has no %s", path, key)
		}
		values = append(values, string(m[1]))
	}
	return values, nil
}

// addRecommended adds the programs that Drayage runs, as the packages declare them.
// They are the user's own: which version, only the user's machine knows.
func (b *bill) addRecommended(control string) error {
	text, err := os.ReadFile(control)
	if err != nil {
		return err
	}
	fields := regexp.MustCompile(`(?m)^(Depends|Recommends|Suggests): (.*)$`).FindAllStringSubmatch(string(text), -1)
	plain := regexp.MustCompile(`^[a-z][a-z0-9.+-]*$`) // neither a variable nor of this version
	for _, field := range fields {
		scope := cdx.ScopeOptional
		if field[1] == "Depends" {
			scope = cdx.ScopeRequired
		}
		for _, name := range strings.Split(field[2], ", ") {
			if plain.MatchString(name) {
				ref := "pkg:deb/debian/" + name
				b.add(product, cdx.Component{BOMRef: ref, Type: cdx.ComponentTypeApplication, Name: name, Scope: scope, PackageURL: ref})
			}
		}
	}
	return nil
}
