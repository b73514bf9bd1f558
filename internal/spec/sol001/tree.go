// SPDX-License-Identifier: Apache-2.0

package sol001

import (
	"math"
	"strconv"
	"strings"

	"github.com/drayage/dray/internal/spec/parse"
	"go.yaml.in/yaml/v3"
)

// scope is one service template that is converted: what its values mean, and which of
// its fields have been read.
type scope struct {
	file   string
	inputs map[string]*yaml.Node // defaults of the template's inputs; nil: it has none
	notes  *notes
	opened []*object
	known  map[*yaml.Node]*object // those of opened
}

// object is a mapping in a service template. A field that nothing reads becomes a note.
type object struct {
	*scope
	in     string
	within string     // its field's name with a dot, if that helps to find it; or ""
	node   *yaml.Node // nil: the field is missing
	keys   []*yaml.Node
	values map[string]*yaml.Node
	seen   map[string]bool
}

func (s *scope) position(n *yaml.Node) parse.Position {
	return parse.Position{File: s.file, Line: n.Line, Column: n.Column}
}

func (s *scope) note(n *yaml.Node, in, fix, format string, args ...any) {
	s.notes.add(s.position(n), in, fix, format, args...)
}

// open makes an object of a value; of a missing one, an object without fields.
func (s *scope) open(n *yaml.Node, in string) *object {
	o := &object{scope: s, in: in, values: map[string]*yaml.Node{}, seen: map[string]bool{}}
	if n = s.resolve(n, in); n == nil {
		return o
	}
	if before := s.known[n]; before != nil {
		return before
	}
	o.node = n
	if n.Kind != yaml.MappingNode {
		s.note(n, in, "write its fields as \"name: value\"", "this is not a mapping")
		return o
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		if o.values[key.Value] != nil {
			s.note(key, in, "remove one of the two", "%s appears twice; the first is read", parse.Quote(key.Value))
			continue
		}
		o.keys, o.values[key.Value] = append(o.keys, key), value
	}
	s.opened = append(s.opened, o)
	s.known[n] = o
	return o
}

// rest notes every field that nothing has read.
func (s *scope) rest() {
	for _, o := range s.opened {
		for _, key := range o.keys {
			if !o.seen[key.Value] && !parse.IsNull(parse.Deref(o.values[key.Value])) {
				s.note(key, o.in, "", "%s has no counterpart in a chain file", o.within+plainKey(key.Value))
			}
		}
	}
}

// plainKey is a field's name for a note.
func plainKey(name string) string {
	if strings.ContainsFunc(name, func(r rune) bool { return r <= ' ' || r > '~' }) || len(name) > 64 || name == "" {
		return parse.Quote(name)
	}
	return name
}

// resolve follows aliases, and replaces {get_input: NAME} by the default of that input.
// It is nil for a missing or empty value, and for an input without a default.
func (s *scope) resolve(n *yaml.Node, in string) *yaml.Node {
	if n == nil {
		return nil
	}
	at := n
	n = parse.Deref(n)
	if n.Kind == yaml.MappingNode && len(n.Content) == 2 && n.Content[0].Value == "get_input" {
		name := parse.Deref(n.Content[1]).Value
		n = s.inputs[name]
		if n == nil {
			s.note(at, in, "write the value in its place, or give the input a default", "the input %s has no default", parse.Quote(name))
			return nil
		}
		copied := *parse.Deref(n)
		copied.Line, copied.Column = at.Line, at.Column
		n = &copied
	}
	if parse.IsNull(n) {
		return nil
	}
	return n
}

// value is a field's value, or nil.
func (o *object) value(name string) *yaml.Node {
	o.seen[name] = true
	return o.resolve(o.values[name], o.in)
}

// skip marks fields that say nothing which a chain file could.
func (o *object) skip(names ...string) {
	for _, name := range names {
		o.seen[name] = true
	}
}

func (o *object) object(name string) *object {
	child := o.open(o.value(name), o.in)
	if name != "properties" && name != "capabilities" && child.within == "" {
		child.within = plainKey(name) + "."
	}
	return child
}

// list is the items of a field that is a list.
func (o *object) list(name string) []*yaml.Node {
	n := o.value(name)
	if n == nil {
		return nil
	}
	if n.Kind != yaml.SequenceNode {
		o.note(n, o.in, "write a list", "%s is no list", name)
		return nil
	}
	return n.Content
}

// text is the field as text, or "".
func (o *object) text(name string) string {
	n := o.value(name)
	if n == nil {
		return ""
	}
	if n.Kind != yaml.ScalarNode {
		o.note(n, o.in, "write one value", "%s cannot be read", name)
		return ""
	}
	return n.Value
}

// integer is a whole number that is not negative.
func (o *object) integer(name string) (int64, bool) {
	n := o.value(name)
	if n == nil {
		return 0, false
	}
	v, err := strconv.ParseInt(n.Value, 10, 64)
	if n.Kind != yaml.ScalarNode || err != nil || v < 0 {
		o.note(n, o.in, "write a whole number", "%s cannot be %s", name, parse.Quote(n.Value))
		return 0, false
	}
	return v, true
}

// float is a number that is not negative.
func (o *object) float(name string) (float64, bool) {
	n := o.value(name)
	if n == nil {
		return 0, false
	}
	v, err := strconv.ParseFloat(n.Value, 64)
	if n.Kind != yaml.ScalarNode || err != nil || v < 0 || math.IsNaN(v) {
		o.note(n, o.in, "write a number", "%s cannot be %s", name, parse.Quote(n.Value))
		return 0, false
	}
	return v, true
}

// quantity is a TOSCA scalar-unit.
func (o *object) quantity(name string, read func(string) (int64, bool)) (int64, bool) {
	n := o.value(name)
	if n == nil {
		return 0, false
	}
	if n.Kind == yaml.ScalarNode {
		if v, ok := read(n.Value); ok {
			return v, true
		}
	}
	o.note(n, o.in, "write a number with a unit of TOSCA", "%s cannot be %s", name, parse.Quote(n.Value))
	return 0, false
}
