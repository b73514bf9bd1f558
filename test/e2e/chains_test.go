// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"strings"
)

// pair is the chain that most tests use:
//
//	[ a ]──ab──[ b ]
//
// Fields fill the gaps of the YAML text.
type pair struct {
	Name      string // of the chain
	Runtime   string
	Image     string // docker only
	Command   string // YAML sequence
	Face      string
	Transport string
	Isolation string
	QoS       string // YAML mapping
	Requires  string // YAML mapping
	Load      string
	Traffic   string // of its bitrates; udp unless given
	Policy    string // YAML mapping
	Restart   string
}

func (p pair) yaml() string {
	var b strings.Builder
	fmt.Fprintf(&b, "apiVersion: drayage/v1\nkind: Chain\nname: %s\n", p.Name)
	if p.Policy != "" {
		fmt.Fprintf(&b, "policy: %s\n", p.Policy)
	}
	b.WriteString("functions:\n")
	for _, name := range []string{"a", "b"} {
		fmt.Fprintf(&b, "  - name: %s\n    runtime: %s\n", name, or(p.Runtime, "process"))
		optional(&b, "image", p.Image)
		optional(&b, "command", p.Command)
		optional(&b, "restart", p.Restart)
		fmt.Fprintf(&b, "    ports: [{name: p0, face: %s}]\n", or(p.Face, "netdev"))
	}
	b.WriteString("links:\n  - name: ab\n    ends: [a.p0, b.p0]\n")
	optional(&b, "transport", p.Transport)
	optional(&b, "traffic", p.Traffic)
	optional(&b, "isolation", p.Isolation)
	optional(&b, "load", p.Load)
	optional(&b, "qos", p.QoS)
	optional(&b, "requires", p.Requires)
	return b.String()
}

func optional(b *strings.Builder, key, value string) {
	if value != "" {
		fmt.Fprintf(b, "    %s: %s\n", key, value)
	}
}

func or(value, fallback string) string {
	if value == "" {
		return fallback
	}
	return value
}

// many is a chain of n links, each between its own two functions.
func many(name string, n int) string {
	var functions, links strings.Builder
	for i := range n {
		for _, side := range []string{"a", "b"} {
			fmt.Fprintf(&functions, "  - {name: %s%d, runtime: process, ports: [{name: p0}]}\n", side, i)
		}
		fmt.Fprintf(&links, "  - {name: l%d, ends: [a%d.p0, b%d.p0]}\n", i, i, i)
	}
	return fmt.Sprintf("apiVersion: drayage/v1\nkind: Chain\nname: %s\nfunctions:\n%slinks:\n%s", name, functions.String(), links.String())
}
