// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"fmt"
	"regexp"
	"strconv"

	"github.com/drayage/dray/internal/spec/parse"
	"go.yaml.in/yaml/v3"
)

// places maps positions in the generated chain file to fields of the object.
type places struct {
	at     map[[2]int]string // by line and column
	inLine map[int]string    // the first field of a line
}

func placesOf(text []byte) *places {
	p := &places{at: map[[2]int]string{}, inLine: map[int]string{}}
	var root yaml.Node
	if yaml.Unmarshal(text, &root) == nil && len(root.Content) == 1 {
		p.walk(root.Content[0], "spec")
	}
	return p
}

func (p *places) walk(n *yaml.Node, path string) {
	p.note(n, path)
	for i, child := range n.Content {
		switch {
		case n.Kind == yaml.SequenceNode:
			p.walk(child, fmt.Sprintf("%s[%d]", path, i))
		case i%2 == 0:
			p.note(child, fieldPath(path, child.Value))
		default:
			p.walk(child, fieldPath(path, n.Content[i-1].Value))
		}
	}
}

// fieldPath is the path of a field. The name of a chain is its object's.
func fieldPath(path, field string) string {
	if path == "spec" && field == "name" {
		return "metadata.name"
	}
	return path + "." + field
}

func (p *places) note(n *yaml.Node, path string) {
	p.at[[2]int{n.Line, n.Column}] = path
	if p.inLine[n.Line] == "" {
		p.inLine[n.Line] = path
	}
}

// inLine matches what a message says of another position in the chain file.
var inLine = regexp.MustCompile(`in line ([0-9]+)`)

// translate replaces positions in the generated text by fields of the object.
func (p *places) translate(faults parse.Errors) Invalid {
	all := make(Invalid, len(faults))
	for i, f := range faults {
		path := p.at[[2]int{f.Pos.Line, f.Pos.Column}]
		if path == "" {
			path = "spec"
		}
		text := inLine.ReplaceAllStringFunc(f.Text, func(s string) string {
			line, _ := strconv.Atoi(inLine.FindStringSubmatch(s)[1])
			if p.inLine[line] == "" {
				return "of the object"
			}
			return "at " + p.inLine[line]
		})
		all[i] = Fault{Path: path, Text: text, Fix: f.Fix}
	}
	return all
}
