// SPDX-License-Identifier: Apache-2.0

package parse

import "go.yaml.in/yaml/v3"

// part is a function or a link of the file, and its lines.
type part struct {
	name        string
	first, last int
}

// Part records the position of a list item, so that its faults can be grouped.
func (d *Decoder) Part(kind string, item *yaml.Node) {
	p := part{name: kind, first: item.Line, last: lastLine(item)}
	item = Deref(item)
	for i := 0; i+1 < len(item.Content); i += 2 {
		if key, value := item.Content[i], Deref(item.Content[i+1]); key.Value == "name" && value.Kind == yaml.ScalarNode {
			p.name += " " + plainName(value.Value)
		}
	}
	d.parts = append(d.parts, p)
}

// plainName is a name for a heading: quoted, unless it is valid.
func plainName(s string) string {
	if !ValidName(s) {
		return Quote(s)
	}
	return s
}

// lastLine is the last line on which a part of n begins.
func lastLine(n *yaml.Node) int {
	last := n.Line
	for _, child := range n.Content {
		last = max(last, lastLine(child))
	}
	return last
}

// in is the name of the part that holds a line, or "".
func (d *Decoder) in(line int) string {
	for _, p := range d.parts {
		if p.first <= line && line <= p.last {
			return p.name
		}
	}
	return ""
}
