// SPDX-License-Identifier: Apache-2.0

package chain

import (
	"regexp"
	"strings"

	"go.yaml.in/yaml/v3"
)

// maxNameLen bounds the names of chains, functions and links: they become part
// of the names of namespaces, cgroups and files.
const maxNameLen = 32

// maxPortNameLen is IFNAMSIZ less its NUL (Linux, if.h).
const maxPortNameLen = 15

var (
	namePattern = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,30}[a-z0-9])?$`)
	portPattern = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,13}[a-z0-9])?$`)
	// A host interface is named by its host, within the kernel's rule
	// (dev_valid_name in net/core/dev.c).
	interfacePattern = regexp.MustCompile(`^[^\s/:]{1,15}$`)
)

// reservedPorts are interface names that a network namespace has for itself,
// or that the kernel refuses because they name folders in /proc/sys/net.
var reservedPorts = map[string]bool{"lo": true, "all": true, "default": true}

// name is the name of a chain, function or link.
func (d *decoder) name(n *yaml.Node, what string) string {
	s, ok := d.text(n, what)
	if ok && !ValidName(s) {
		d.fail(n, "use 1 to 32 of a-z, 0-9 and -, with no - at either end", "%s cannot be %s", what, quote(s))
	}
	return s
}

// ValidName reports whether a chain, a function or a link can have that name.
func ValidName(s string) bool { return namePattern.MatchString(s) }

// portName is the name of a port, which is also its interface's.
func (d *decoder) portName(n *yaml.Node) string {
	s, ok := d.text(n, "a port's name")
	switch {
	case !ok:
	case len(s) > maxPortNameLen:
		d.fail(n, "shorten it to 15 characters, the longest name of an interface", "the port name %s is too long", quote(s))
	case !portPattern.MatchString(s):
		d.fail(n, "use 1 to 15 of a-z, 0-9 and -, with no - at either end", "a port's name cannot be %s", quote(s))
	case reservedPorts[s]:
		d.fail(n, "choose another name", "the port name %s belongs to the kernel", quote(s))
	}
	return s
}

// interfaceName is the name of a host interface.
func (d *decoder) interfaceName(n *yaml.Node) string {
	s, ok := d.text(n, "an uplink")
	if ok && (!interfacePattern.MatchString(s) || strings.Trim(s, ".") == "") {
		d.fail(n, `write the name of a host interface, such as "eth0"`, "an uplink cannot be %s", quote(s))
	}
	return s
}

// unique notes names and complains about the second of its kind.
type unique struct {
	what string // "functions"
	seen map[string]int
}

func newUnique(what string) *unique { return &unique{what: what, seen: map[string]int{}} }

// add takes the name that stands at n; an empty name has been complained about.
func (u *unique) add(d *decoder, name string, n *yaml.Node) {
	if name == "" || n == nil {
		return
	}
	if line, ok := u.seen[name]; ok {
		d.fail(n, "rename one of the two", "two %s are called %s, the first in line %d", u.what, quote(name), line)
		return
	}
	u.seen[name] = n.Line
}
