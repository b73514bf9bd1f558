// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"bytes"
	"errors"
	"regexp"
	"slices"
	"strconv"

	"github.com/drayage/dray/internal/spec/chain"
	"github.com/drayage/dray/internal/spec/parse"
	"github.com/drayage/dray/internal/spec/units"
	"go.yaml.in/yaml/v3"
)

// expand copies a value without aliases, anchors and foot comments. A foot comment
// belongs to what follows, which may be left out. The parser has bounded the copy.
func expand(n *yaml.Node) *yaml.Node {
	n = parse.Deref(n)
	to := *n
	to.Anchor, to.FootComment = "", ""
	to.Content = make([]*yaml.Node, len(n.Content))
	for i, child := range n.Content {
		to.Content[i] = expand(child)
	}
	if to.Kind == yaml.ScalarNode && to.Tag == "!!str" && oldWord.MatchString(to.Value) {
		to.Style = yaml.DoubleQuotedStyle
	}
	return &to
}

// oldWord matches what YAML 1.1, which Kubernetes reads, does not take for text.
var oldWord = regexp.MustCompile(`^(?i:y|n|yes|no|on|off|[-+]?[0-9][0-9_]*(:[0-9_.]+)*)$`)

// keep copies a mapping with only some of its fields. It adds the names of the others
// to dropped, unless that is nil.
func keep(n *yaml.Node, fields []string, dropped *[]string) *yaml.Node {
	to := *n
	to.Content = nil
	for i := 0; i+1 < len(n.Content); i += 2 {
		switch name := n.Content[i].Value; {
		case slices.Contains(fields, name):
			to.Content = append(to.Content, n.Content[i], n.Content[i+1])
		case dropped != nil:
			*dropped = append(*dropped, name)
		}
	}
	return &to
}

// field is the value of a mapping's field, or nil.
func field(n *yaml.Node, name string) *yaml.Node {
	if n == nil {
		return nil
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == name {
			return n.Content[i+1]
		}
	}
	return nil
}

func items(n *yaml.Node) []*yaml.Node {
	if n == nil {
		return nil
	}
	return n.Content
}

// plainNumbers writes what a file may give as a number or as text ("0.01%", p99.9) as a
// number: a field in Kubernetes has one type.
func plainNumbers(requires *yaml.Node) {
	number := func(name string, read func(string) (float64, error)) {
		n := field(requires, name)
		if n == nil {
			return
		}
		if v, err := read(n.Value); err == nil && (n.Tag == "!!str" || n.Style != 0) {
			n.Value, n.Style, n.Tag = strconv.FormatFloat(v, 'g', -1, 64), 0, ""
		}
	}
	number("packet_loss_ratio", func(s string) (float64, error) { v, err := units.ParseRatio(s); return float64(v), err })
	number("on_time", func(s string) (float64, error) { v, err := units.ParseRatio(s); return float64(v), err })
	number("percentile", func(s string) (float64, error) { v, err := units.ParsePercentile(s); return float64(v), err })
}

// object is a Chain with that spec.
func object(name string, spec *yaml.Node) *yaml.Node {
	text := func(s string) *yaml.Node { return expand(&yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: s}) }
	mapping := func(content ...*yaml.Node) *yaml.Node { return &yaml.Node{Kind: yaml.MappingNode, Content: content} }
	return mapping(
		text("apiVersion"), text(APIVersion),
		text("kind"), text(chain.Kind),
		text("metadata"), mapping(text("name"), text(name)),
		text("spec"), spec,
	)
}

// Text is the Chain of that name with a spec, as a manifest.
func Text(name string, spec []byte) (string, error) {
	var n yaml.Node
	if err := yaml.Unmarshal(spec, &n); err != nil { // JSON is YAML
		return "", err
	}
	if len(n.Content) != 1 {
		return "", errors.New("the spec is empty")
	}
	block(n.Content[0])
	return encode(object(name, expand(n.Content[0])))
}

// block removes the style of JSON.
func block(n *yaml.Node) {
	n.Style = 0
	for _, child := range n.Content {
		block(child)
	}
}

func encode(n *yaml.Node) (string, error) {
	var out bytes.Buffer
	e := yaml.NewEncoder(&out)
	e.SetIndent(2)
	if err := e.Encode(n); err != nil {
		return "", err
	}
	return out.String(), e.Close()
}
