// SPDX-License-Identifier: Apache-2.0

package chain

import (
	"fmt"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// maxErrors bounds how many faults of one file are shown.
const maxErrors = 100

// decoder turns YAML nodes into a Chain and collects every fault on its way.
type decoder struct {
	file   string
	kind   string // of document
	errs   Errors // at most maxErrors
	unseen int    // faults beyond those
	parts  []part // of the file, as far as they were read
}

// field is one field of an object of type T in the chain file.
type field[T any] struct {
	name     string
	required bool
	decode   func(d *decoder, n *yaml.Node, to *T)
}

// object decodes a mapping and returns its values by field name, or nil where
// n is not a mapping. what names the object in errors: "a function".
func object[T any](d *decoder, n *yaml.Node, what string, fields []field[T], to *T) map[string]*yaml.Node {
	n = deref(n)
	if !d.isKind(n, yaml.MappingNode, what) {
		return nil
	}
	values := d.keys(n)
	byName := make(map[string]*field[T], len(fields))
	for i := range fields {
		byName[fields[i].name] = &fields[i]
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		f := byName[key.Value]
		switch {
		case values[key.Value] != value: // a key that keys has reported
		case f == nil:
			d.unknownField(key, what, fieldNames(fields))
		case d.hasValue(key, value):
			f.decode(d, value, to)
		}
	}
	for i := range fields {
		if fields[i].required && values[fields[i].name] == nil {
			d.missing(n, what, fields[i].name)
		}
	}
	return values
}

// keys returns a mapping's values by key and reports keys that are not plain
// text, that stand twice, or that merge.
func (d *decoder) keys(n *yaml.Node) map[string]*yaml.Node {
	values := make(map[string]*yaml.Node, len(n.Content)/2)
	first := make(map[string]*yaml.Node, len(n.Content)/2)
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		switch {
		case key.Kind != yaml.ScalarNode || key.Style&yaml.TaggedStyle != 0:
			d.fail(key, "write plain text before the colon", "a field's name must be plain text")
		case key.Tag == "!!merge":
			d.fail(key, "write the fields out, or use an alias as a whole value", "merge keys (<<) are not supported")
		case first[key.Value] != nil:
			d.fail(key, "remove one of the two", "the field %s stands twice, first in line %d", quote(key.Value), first[key.Value].Line)
		default:
			first[key.Value], values[key.Value] = key, value
		}
	}
	return values
}

func (d *decoder) unknownField(key *yaml.Node, what string, known []string) {
	fix := "the fields are " + strings.Join(known, ", ")
	if near := similar(key.Value, known); near != "" {
		fix = fmt.Sprintf("did you mean %q?", near)
	}
	d.fail(key, fix, "unknown field %s in %s", quote(key.Value), what)
}

// list calls each for every item of a sequence.
func (d *decoder) list(n *yaml.Node, what string, each func(item *yaml.Node)) {
	n = deref(n)
	if !d.isKind(n, yaml.SequenceNode, what) {
		return
	}
	for _, item := range n.Content {
		if isNull(deref(item)) {
			d.fail(item, "remove the item or give it a value", "an item of %s has no value", what)
			continue
		}
		each(item)
	}
}

// scalar is the text of any single value, as it is written.
func (d *decoder) scalar(n *yaml.Node, what string) (string, bool) {
	n = deref(n)
	if !d.isKind(n, yaml.ScalarNode, what) {
		return "", false
	}
	if strings.ContainsRune(n.Value, 0) {
		d.fail(n, "remove it", "%s holds a NUL character", what)
		return "", false
	}
	return n.Value, true
}

// text is a string; a number or a truth value must be quoted to be one.
func (d *decoder) text(n *yaml.Node, what string) (string, bool) {
	s, ok := d.scalar(n, what)
	if !ok {
		return "", false
	}
	if tag := deref(n).Tag; tag != "!!str" {
		d.fail(n, "put it in quotes: "+quote(s), "%s must be text, not %s", what, tagNames[tag])
		return "", false
	}
	if s == "" {
		d.fail(n, "give it a value, or remove the field", "%s is empty", what)
		return "", false
	}
	return s, true
}

// tagNames say what YAML takes an unquoted text for.
var tagNames = map[string]string{
	"!!int": "a number", "!!float": "a number", "!!bool": "a truth value", "!!timestamp": "a date", "!!merge": "a merge key",
}

// integer is a decimal number between low and high.
func (d *decoder) integer(n *yaml.Node, what string, low, high int) (int, bool) {
	s, ok := d.scalar(n, what)
	if !ok {
		return 0, false
	}
	v, err := strconv.Atoi(s)
	if err != nil || strconv.Itoa(v) != s || deref(n).Tag != "!!int" {
		d.fail(n, fmt.Sprintf("write digits only, such as %d", low), "%s must be a whole number, not %s", what, quote(s))
		return 0, false
	}
	if v < low || v > high {
		d.fail(n, fmt.Sprintf("write %d to %d", low, high), "%s cannot be %d", what, v)
		return 0, false
	}
	return v, true
}

// boolean is true or false.
func (d *decoder) boolean(n *yaml.Node, what string) (value, ok bool) {
	s, ok := d.scalar(n, what)
	if ok && (deref(n).Tag != "!!bool" || s != "true" && s != "false") {
		d.fail(n, "write true or false", "%s cannot be %s", what, quote(s))
		return false, false
	}
	return s == "true", ok
}

// choice is one of a few words.
func choice[T ~string](d *decoder, n *yaml.Node, what string, words []T) (T, bool) {
	s, ok := d.scalar(n, what)
	if !ok {
		return "", false
	}
	known := make([]string, len(words))
	for i, w := range words {
		if string(w) == s {
			return w, true
		}
		known[i] = string(w)
	}
	fix := "write " + either(known)
	if near := similar(s, known); near != "" {
		fix = fmt.Sprintf("did you mean %q?", near)
	}
	d.fail(n, fix, "unknown %s %s", what, quote(s))
	return "", false
}

// quantity is a value with a unit.
func quantity[T any](d *decoder, n *yaml.Node, what string, parse func(string) (T, error)) (v T, ok bool) {
	s, ok := d.scalar(n, what)
	if !ok {
		return v, false
	}
	v, err := parse(s)
	if err != nil {
		d.failWith(n, err)
		return v, false
	}
	return v, true
}

// positive is a quantity greater than 0.
func positive[T ~int64 | ~uint64](d *decoder, n *yaml.Node, what string, parse func(string) (T, error)) (T, bool) {
	v, ok := quantity(d, n, what, parse)
	if ok && v == 0 {
		d.fail(n, "leave the field out to ask for nothing", "%s must be greater than 0", what)
		return 0, false
	}
	return v, ok
}
