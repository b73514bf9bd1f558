// SPDX-License-Identifier: Apache-2.0

package parse

import (
	"regexp"

	"go.yaml.in/yaml/v3"
)

// maxNameLen bounds the names of chains, functions and links: they become part
// of the names of namespaces, cgroups and files.
const maxNameLen = 32

// NamePattern is the form of such a name.
var NamePattern = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,30}[a-z0-9])?$`)

// Name is the name of a chain, function or link.
func (d *Decoder) Name(n *yaml.Node, what string) string {
	s, ok := d.Text(n, what)
	if ok && !ValidName(s) {
		d.Fail(n, "use 1 to 32 of a-z, 0-9 and -, with no - at either end", "%s cannot be %s", what, Quote(s))
	}
	return s
}

// ValidName reports whether a chain, a function or a link can have that name.
func ValidName(s string) bool { return NamePattern.MatchString(s) }

// Unique records names and reports duplicates.
type Unique struct {
	what string // "functions"
	seen map[string]int
}

func NewUnique(what string) *Unique { return &Unique{what: what, seen: map[string]int{}} }

// Add records the name at n; an empty name has already been reported.
func (u *Unique) Add(d *Decoder, name string, n *yaml.Node) {
	if name == "" || n == nil {
		return
	}
	if line, ok := u.seen[name]; ok {
		d.Fail(n, "rename one of the two", "two %s are called %s, the first in line %d", u.what, Quote(name), line)
		return
	}
	u.seen[name] = n.Line
}
