// SPDX-License-Identifier: Apache-2.0

// Package image builds root file systems for functions from Debian packages.
package image

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/drayage/dray/images"
)

// Recipe describes the content of an image.
type Recipe struct {
	Name, Title string
	Packages    []Part // Debian's, in addition to the base system
	Programs    []Part // Drayage's, which go to /usr/local/bin, and libraries to /usr/local/lib
	Scripts     []Part // of Files, which go to /usr/local/bin
	// Suite is the Debian release that has these packages; empty: each has.
	Suite string
	// Source is what the image's own programs are built from; nil: it has none.
	Source        *Source
	BuildPackages []Part // Debian's, only in the root file system in which the sources are built
	// Files are those of the recipe's folder, by path. build.sh builds the sources.
	Files map[string][]byte
	// Takes is roughly how long the build takes on two idle cores.
	Takes time.Duration
	// Try is a command within the image that shows that its program runs: it exits
	// with 0, and prints Shows.
	Try   []string
	Shows string

	text []byte
}

// Part is a package or program, and its purpose.
type Part struct{ Name, For string }

// Find returns the recipe of that name.
func Find(name string) (*Recipe, error) {
	text, ok := images.Text(name)
	if !ok {
		return nil, fmt.Errorf("no recipe for an image %q: choose from %s", name, strings.Join(images.Names(), ", "))
	}
	return Parse(name, text, images.Files(name))
}

// partName matches a Debian package name, by Debian's policy; programName also
// allows the underscores of libraries. Neither matches an option or a path.
var (
	partName    = regexp.MustCompile(`^[a-z0-9][a-z0-9+.-]+$`)
	programName = regexp.MustCompile(`^[a-z0-9][a-z0-9+._-]+$`)
)

// lists are the keys that may stand in several lines, for different parts.
var lists = []string{"package", "build-package", "program", "script"}

// Parse reads a recipe: lines "key: value", and comments. Each error names its
// line. files are those of the recipe's folder, by path.
func Parse(name string, text []byte, files map[string][]byte) (*Recipe, error) {
	r := &Recipe{Name: name, Files: files, text: text}
	seen := map[string]bool{}
	for i, line := range strings.Split(string(text), "\n") {
		if line = strings.TrimSpace(line); line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		key, value, ok := strings.Cut(line, ":")
		if value = strings.TrimSpace(value); !ok || value == "" {
			return nil, fmt.Errorf("%s:%d: %q is not of the form \"key: value\"", name, i+1, line)
		}
		id := key
		if slices.Contains(lists, key) {
			id = key + " " + strings.Fields(value)[0]
		}
		if seen[id] {
			return nil, fmt.Errorf("%s:%d: a second %q", name, i+1, id)
		}
		seen[id] = true
		if err := r.set(key, value); err != nil {
			return nil, fmt.Errorf("%s:%d: %w", name, i+1, err)
		}
	}
	for _, key := range []string{"title", "takes", "try", "shows"} {
		if !seen[key] {
			return nil, fmt.Errorf("%s: the recipe has no line %q", name, key)
		}
	}
	if r.Source == nil && len(r.BuildPackages) > 0 {
		return nil, fmt.Errorf("%s: the recipe has build packages, but no line \"source\"", name)
	}
	return r, r.checkFiles()
}

// checkFiles reports what the recipe's folder lacks.
func (r *Recipe) checkFiles() error {
	var needs []string
	if r.Source != nil {
		needs = append(needs, buildScript)
	}
	for _, p := range r.Scripts {
		needs = append(needs, p.Name)
	}
	for _, file := range needs {
		if _, ok := r.Files[file]; !ok {
			return fmt.Errorf("%s: the recipe needs the file %s in a folder %s/ next to it", r.Name, file, r.Name)
		}
	}
	return nil
}

// set stores one line.
func (r *Recipe) set(key, value string) (err error) {
	switch key {
	case "title":
		r.Title = value
	case "package":
		return addPart(&r.Packages, partName, value)
	case "build-package":
		return addPart(&r.BuildPackages, partName, value)
	case "program":
		return addPart(&r.Programs, programName, value)
	case "script":
		return addPart(&r.Scripts, programName, value)
	case "suite":
		if r.Suite = value; !partName.MatchString(value) {
			err = fmt.Errorf("%q is not the name of a Debian release", value)
		}
	case "source":
		r.Source, err = parseSource(value)
	case "takes":
		if r.Takes, err = time.ParseDuration(value); err == nil && r.Takes <= 0 {
			err = fmt.Errorf("a build cannot take %v", r.Takes)
		}
	case "try":
		r.Try = strings.Fields(value)
	case "shows":
		r.Shows = value
	default:
		return fmt.Errorf("unknown key %q: use title, package, program, script, suite, source, build-package, takes, try or shows", key)
	}
	return err
}

func addPart(list *[]Part, allowed *regexp.Regexp, value string) error {
	name, why, _ := strings.Cut(value, " ")
	if why = strings.TrimSpace(why); why == "" {
		return fmt.Errorf("%s: add its purpose after the name", name)
	}
	if !allowed.MatchString(name) {
		return fmt.Errorf("%q is not the name of a package, program or script", name)
	}
	*list = append(*list, Part{name, why})
	return nil
}
