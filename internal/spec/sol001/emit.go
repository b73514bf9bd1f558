// SPDX-License-Identifier: Apache-2.0

package sol001

import (
	"bytes"
	"regexp"
	"strconv"
	"strings"
	"unicode"

	"go.yaml.in/yaml/v3"
)

// The functions below make nodes of a document that is written.

// pairs is a mapping of names and values in turn; a nil value leaves out its field.
func pairs(all ...any) *yaml.Node {
	n := &yaml.Node{Kind: yaml.MappingNode}
	for i := 0; i+1 < len(all); i += 2 {
		if value, ok := all[i+1].(*yaml.Node); ok && value != nil {
			n.Content = append(n.Content, text(all[i].(string)), value)
		}
	}
	return n
}

func sequence(items ...*yaml.Node) *yaml.Node {
	return &yaml.Node{Kind: yaml.SequenceNode, Content: items}
}

// inline is a mapping or list on one line.
func inline(n *yaml.Node) *yaml.Node {
	n.Style = yaml.FlowStyle
	return n
}

// oldWord matches what a reader of YAML 1.1 does not take for text.
var oldWord = regexp.MustCompile(`^(?i:y|n|yes|no|on|off|[-+]?[0-9][0-9_.]*(:[0-9_.]+)*)$`)

func text(s string) *yaml.Node {
	n := &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: s}
	if oldWord.MatchString(s) {
		n.Style = yaml.DoubleQuotedStyle
	}
	return n
}

func integer(v int64) *yaml.Node {
	return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!int", Value: strconv.FormatInt(v, 10)}
}

// float has no exponent, which readers of YAML 1.1 take for text.
func float(v float64) *yaml.Node {
	return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!float", Value: strconv.FormatFloat(v, 'f', -1, 64)}
}

func boolean(v bool) *yaml.Node {
	return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!bool", Value: strconv.FormatBool(v)}
}

// words is a list of texts on one line.
func words(all ...string) *yaml.Node {
	n := inline(sequence())
	for _, s := range all {
		n.Content = append(n.Content, text(s))
	}
	return n
}

// maxComment limits a comment, in characters.
const maxComment = 110

// comment is text for one line of a comment.
func comment(s string) string {
	s = strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return ' '
	}, s)
	runes := []rune(strings.Join(strings.Fields(s), " "))
	if len(runes) > maxComment {
		return string(runes[:maxComment]) + "…"
	}
	return string(runes)
}

// encode is the text of a document, after comment lines.
func encode(head []string, root *yaml.Node) (string, error) {
	var out bytes.Buffer
	for _, line := range head {
		out.WriteString("# " + comment(line) + "\n")
	}
	e := yaml.NewEncoder(&out)
	e.SetIndent(2)
	if err := e.Encode(root); err != nil {
		return "", err
	}
	if err := e.Close(); err != nil {
		return "", err
	}
	return out.String(), nil
}
