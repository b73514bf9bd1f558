// SPDX-License-Identifier: Apache-2.0

package chain

import (
	"regexp"
	"strings"

	"github.com/drayage/dray/internal/spec/parse"
	"go.yaml.in/yaml/v3"
)

// maxPortNameLen is IFNAMSIZ less its NUL (Linux, if.h).
const maxPortNameLen = 15

var (
	portPattern = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,13}[a-z0-9])?$`)
	// The host names its interface, within the kernel's rule (dev_valid_name in
	// net/core/dev.c).
	interfacePattern = regexp.MustCompile(`^[^\s/:]{1,15}$`)
)

// reservedPorts are names of the namespace's own interface, or names that the kernel
// refuses because they are folders in /proc/sys/net.
var reservedPorts = map[string]bool{"lo": true, "all": true, "default": true}

// decodePortName reads the name of a port and of its interface.
func decodePortName(d *parse.Decoder, n *yaml.Node) string {
	s, ok := d.Text(n, "a port's name")
	switch {
	case !ok:
	case len(s) > maxPortNameLen:
		d.Fail(n, "shorten it to 15 characters, the longest name of an interface", "the port name %s is too long", parse.Quote(s))
	case !portPattern.MatchString(s):
		d.Fail(n, "use 1 to 15 of a-z, 0-9 and -, with no - at either end", "a port's name cannot be %s", parse.Quote(s))
	case reservedPorts[s]:
		d.Fail(n, "choose another name", "the port name %s is reserved by the kernel", parse.Quote(s))
	}
	return s
}

// decodeInterfaceName reads a host interface's name.
func decodeInterfaceName(d *parse.Decoder, n *yaml.Node) string {
	s, ok := d.Text(n, "an uplink")
	if ok && (!interfacePattern.MatchString(s) || strings.Trim(s, ".") == "") {
		d.Fail(n, `write the name of a host interface, such as "eth0"`, "an uplink cannot be %s", parse.Quote(s))
	}
	return s
}
