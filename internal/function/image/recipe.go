// SPDX-License-Identifier: Apache-2.0

// Package image builds root file systems for functions from Debian packages.
package image

import (
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/drayage/dray/images"
)

// Recipe describes the content of an image.
type Recipe struct {
	Name, Title string
	Packages    []Part // Debian's, in addition to the base system
	Programs    []Part // Drayage's, which go to /usr/local/bin
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
	return Parse(name, text)
}

// partName matches a Debian package name, by Debian's policy, and a program:
// neither an option nor a path.
var partName = regexp.MustCompile(`^[a-z0-9][a-z0-9+.-]+$`)

// Parse reads a recipe: lines "key: value", and comments. Each error names its
// line.
func Parse(name string, text []byte) (*Recipe, error) {
	r := &Recipe{Name: name, text: text}
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
		if key == "package" || key == "program" {
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
	return r, nil
}

// set stores one line.
func (r *Recipe) set(key, value string) (err error) {
	switch key {
	case "title":
		r.Title = value
	case "package":
		return addPart(&r.Packages, value)
	case "program":
		return addPart(&r.Programs, value)
	case "takes":
		if r.Takes, err = time.ParseDuration(value); err == nil && r.Takes <= 0 {
			err = fmt.Errorf("a build cannot take %v", r.Takes)
		}
	case "try":
		r.Try = strings.Fields(value)
	case "shows":
		r.Shows = value
	default:
		return fmt.Errorf("unknown key %q: use title, package, program, takes, try or shows", key)
	}
	return err
}

func addPart(list *[]Part, value string) error {
	name, why, _ := strings.Cut(value, " ")
	if why = strings.TrimSpace(why); why == "" {
		return fmt.Errorf("%s: add its purpose after the name", name)
	}
	if !partName.MatchString(name) {
		return fmt.Errorf("%q is not the name of a package or program", name)
	}
	*list = append(*list, Part{name, why})
	return nil
}
