// SPDX-License-Identifier: Apache-2.0

package parse

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/drayage/dray/internal/spec/schema"
	"go.yaml.in/yaml/v3"
)

// maxErrors limits the faults shown for one file.
const maxErrors = 100

// Decoder turns YAML nodes into a document and collects every fault.
type Decoder struct {
	file   string
	kind   string // of document
	errs   Errors // at most maxErrors
	unseen int    // faults beyond maxErrors
	parts  []part // of the file, as far as read
}

// Field is one field of an object of type T in a file.
type Field[T any] struct {
	Name     string
	Required bool
	Doc      string        // one or more sentences for readers of the schema
	Form     schema.Schema // the form of a value
	Decode   func(d *Decoder, n *yaml.Node, to *T)

	// read is in place of Decode; noun is its value's name in errors.
	read func(d *Decoder, n *yaml.Node, noun string, to *T)
	noun string
}

// Object decodes a mapping and returns its values by field name, or nil if n is not a
// mapping. what names the object in errors: "a function".
func Object[T any](d *Decoder, n *yaml.Node, what string, fields []Field[T], to *T) map[string]*yaml.Node {
	n = Deref(n)
	if !d.IsKind(n, yaml.MappingNode, what) {
		return nil
	}
	values := d.Keys(n)
	byName := make(map[string]*Field[T], len(fields))
	for i := range fields {
		byName[fields[i].Name] = &fields[i]
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		f := byName[key.Value]
		switch {
		case values[key.Value] != value: // a key that Keys has reported
		case f == nil:
			d.unknownField(key, what, fieldNames(fields))
		case !d.hasValue(key, value):
		case f.read != nil:
			f.read(d, value, f.noun, to)
		default:
			f.Decode(d, value, to)
		}
	}
	for i := range fields {
		if fields[i].Required && values[fields[i].Name] == nil {
			d.missing(n, what, fields[i].Name)
		}
	}
	return values
}

// Keys returns a mapping's values by key. It reports merge keys, duplicate keys and
// keys that are not plain text.
func (d *Decoder) Keys(n *yaml.Node) map[string]*yaml.Node {
	values := make(map[string]*yaml.Node, len(n.Content)/2)
	first := make(map[string]*yaml.Node, len(n.Content)/2)
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		switch {
		case key.Kind != yaml.ScalarNode || key.Style&yaml.TaggedStyle != 0:
			d.Fail(key, "write plain text before the colon", "a field's name must be plain text")
		case key.Tag == "!!merge":
			d.Fail(key, "write the fields out, or use an alias as a whole value", "merge keys (<<) are not supported")
		case first[key.Value] != nil:
			d.Fail(key, "remove one of the two", "the field %s appears twice, first in line %d", Quote(key.Value), first[key.Value].Line)
		default:
			first[key.Value], values[key.Value] = key, value
		}
	}
	return values
}

func (d *Decoder) unknownField(key *yaml.Node, what string, known []string) {
	fix := "the fields are " + strings.Join(known, ", ")
	if near := Similar(key.Value, known); near != "" {
		fix = fmt.Sprintf("did you mean %q?", near)
	}
	d.Fail(key, fix, "unknown field %s in %s", Quote(key.Value), what)
}

// List calls each for every item of a sequence.
func (d *Decoder) List(n *yaml.Node, what string, each func(item *yaml.Node)) {
	n = Deref(n)
	if !d.IsKind(n, yaml.SequenceNode, what) {
		return
	}
	for _, item := range n.Content {
		if IsNull(Deref(item)) {
			d.Fail(item, "remove the item or give it a value", "an item of %s has no value", what)
			continue
		}
		each(item)
	}
}

// Scalar is the text of any single value, as written.
func (d *Decoder) Scalar(n *yaml.Node, what string) (string, bool) {
	n = Deref(n)
	if !d.IsKind(n, yaml.ScalarNode, what) {
		return "", false
	}
	if strings.ContainsRune(n.Value, 0) {
		d.Fail(n, "remove it", "%s holds a NUL character", what)
		return "", false
	}
	return n.Value, true
}

// Text is a string; a number or a truth value must be quoted to be one.
func (d *Decoder) Text(n *yaml.Node, what string) (string, bool) {
	s, ok := d.Scalar(n, what)
	if !ok {
		return "", false
	}
	if tag := Deref(n).Tag; tag != "!!str" {
		d.Fail(n, "put it in quotes: "+Quote(s), "%s must be text, not %s", what, tagNames[tag])
		return "", false
	}
	if s == "" {
		d.Fail(n, "give it a value, or remove the field", "%s is empty", what)
		return "", false
	}
	return s, true
}

// tagNames name the types that YAML infers from text.
var tagNames = map[string]string{
	"!!int": "a number", "!!float": "a number", "!!bool": "a boolean", "!!timestamp": "a date", "!!merge": "a merge key",
}

// Integer is a decimal number between low and high.
func (d *Decoder) Integer(n *yaml.Node, what string, low, high int) (int, bool) {
	s, ok := d.Scalar(n, what)
	if !ok {
		return 0, false
	}
	v, err := strconv.Atoi(s)
	if err != nil || strconv.Itoa(v) != s || Deref(n).Tag != "!!int" {
		d.Fail(n, fmt.Sprintf("write digits only, such as %d", low), "%s must be a whole number, not %s", what, Quote(s))
		return 0, false
	}
	if v < low || v > high {
		d.Fail(n, fmt.Sprintf("write %d to %d", low, high), "%s cannot be %d", what, v)
		return 0, false
	}
	return v, true
}

// Boolean is true or false.
func (d *Decoder) Boolean(n *yaml.Node, what string) (value, ok bool) {
	s, ok := d.Scalar(n, what)
	if ok && (Deref(n).Tag != "!!bool" || s != "true" && s != "false") {
		d.Fail(n, "write true or false", "%s cannot be %s", what, Quote(s))
		return false, false
	}
	return s == "true", ok
}

// Choice is one of a few words.
func Choice[T ~string](d *Decoder, n *yaml.Node, what string, words []T) (T, bool) {
	s, ok := d.Scalar(n, what)
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
	fix := "write " + Either(known)
	if near := Similar(s, known); near != "" {
		fix = fmt.Sprintf("did you mean %q?", near)
	}
	d.Fail(n, fix, "unknown %s %s", what, Quote(s))
	return "", false
}

// Quantity is a value with a unit.
func Quantity[T any](d *Decoder, n *yaml.Node, what string, parse func(string) (T, error)) (v T, ok bool) {
	s, ok := d.Scalar(n, what)
	if !ok {
		return v, false
	}
	v, err := parse(s)
	if err != nil {
		d.FailWith(n, err)
		return v, false
	}
	return v, true
}

// Positive is a quantity greater than 0.
func Positive[T ~int64 | ~uint64](d *Decoder, n *yaml.Node, what string, parse func(string) (T, error)) (T, bool) {
	v, ok := Quantity(d, n, what, parse)
	if ok && v == 0 {
		d.Fail(n, "leave out the field to require nothing", "%s must be greater than 0", what)
		return 0, false
	}
	return v, ok
}
