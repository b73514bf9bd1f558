// SPDX-License-Identifier: Apache-2.0

package parse

import (
	"errors"
	"fmt"

	"go.yaml.in/yaml/v3"
)

// Position is the position of a node.
func (d *Decoder) Position(n *yaml.Node) Position {
	return Position{File: d.file, Line: n.Line, Column: n.Column}
}

// Positions are the positions of an object's values.
func (d *Decoder) Positions(values map[string]*yaml.Node) map[string]Position {
	at := make(map[string]Position, len(values))
	for name, n := range values {
		at[name] = d.Position(n)
	}
	return at
}

// Fail records a fault of the text at n.
func (d *Decoder) Fail(n *yaml.Node, fix, format string, args ...any) {
	d.FailAt(d.Position(n), fix, format, args...)
}

func (d *Decoder) FailAt(at Position, fix, format string, args ...any) {
	if d.Full() {
		d.unseen++
		return
	}
	d.errs = append(d.errs, &Error{Pos: at, Text: fmt.Sprintf(format, args...), Fix: fix})
}

// Failed reports whether there is any fault yet.
func (d *Decoder) Failed() bool { return len(d.errs) > 0 }

// Full reports whether further faults are only counted, so that callers can skip costly
// suggestions.
func (d *Decoder) Full() bool { return len(d.errs) >= maxErrors }

// missing records that an object at n lacks a field.
func (d *Decoder) missing(n *yaml.Node, what, name string) {
	fix := "add it"
	if value := d.versionField(name); value != "" {
		fix = fmt.Sprintf("add %q", name+": "+value)
	}
	d.Fail(n, fix, "%s needs the field %q", what, name)
}

// FailWith records a fault that a plain-text parser found.
func (d *Decoder) FailWith(n *yaml.Node, err error) {
	fault := &Error{Text: err.Error()}
	errors.As(err, &fault)
	d.Fail(n, fault.Fix, "%s", fault.Text)
}

// result is every fault found, or nil.
func (d *Decoder) result() error {
	if len(d.errs) == 0 {
		return nil
	}
	for _, fault := range d.errs {
		fault.In = d.in(fault.Pos.Line)
	}
	errs := sortErrors(d.errs)
	if d.unseen > 0 {
		errs = append(errs, &Error{Pos: errs[len(errs)-1].Pos,
			Text: fmt.Sprintf("%d more errors are not shown", d.unseen), Fix: "fix the errors above first"})
	}
	return errs
}

// IsKind reports whether n has the required form, and records a fault if not.
func (d *Decoder) IsKind(n *yaml.Node, kind yaml.Kind, what string) bool {
	if n.Style&yaml.TaggedStyle != 0 {
		d.Fail(n, "remove the tag", "the tag %s is not supported", Quote(n.Tag))
		return false
	}
	if n.Kind == kind && !IsNull(n) {
		return true
	}
	fix := map[yaml.Kind]string{
		yaml.MappingNode:  `write its fields as "name: value"`,
		yaml.SequenceNode: `write a list: "- item" on lines of their own, or [item, item]`,
		yaml.ScalarNode:   "write one value",
	}[kind]
	d.Fail(n, fix, "%s cannot be %s", what, form(n))
	return false
}

// hasValue reports whether a field has a value, and records a fault if not.
func (d *Decoder) hasValue(key, value *yaml.Node) bool {
	if !IsNull(Deref(value)) {
		return true
	}
	d.Fail(value, "give it one, or remove the field", "the field %s has no value", Quote(key.Value))
	return false
}

// form names the kind of a node.
func form(n *yaml.Node) string {
	switch {
	case IsNull(n):
		return "empty"
	case n.Kind == yaml.MappingNode:
		return "a mapping"
	case n.Kind == yaml.SequenceNode:
		return "a list"
	}
	return "just " + Quote(n.Value)
}

func IsNull(n *yaml.Node) bool { return n.Kind == yaml.ScalarNode && n.Tag == "!!null" }

// Deref follows an alias. checkBounds has shown that this ends.
func Deref(n *yaml.Node) *yaml.Node {
	for n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	return n
}

// fieldNames are the names of an object's fields.
func fieldNames[T any](fields []Field[T]) []string {
	names := make([]string, len(fields))
	for i := range fields {
		names[i] = fields[i].Name
	}
	return names
}

// versionField is the required value of a field that identifies the document; else
// empty.
func (d *Decoder) versionField(name string) string {
	return map[string]string{"apiVersion": APIVersion, "kind": d.kind}[name]
}

// checkVersion reports a document of another kind or version.
func (d *Decoder) checkVersion(root *yaml.Node) {
	root = Deref(root)
	if root.Kind != yaml.MappingNode {
		return
	}
	for i := 0; i+1 < len(root.Content); i += 2 {
		key, value := root.Content[i], Deref(root.Content[i+1])
		want := d.versionField(key.Value)
		if key.Kind != yaml.ScalarNode || want == "" || IsNull(value) {
			continue
		}
		fix := fmt.Sprintf("this version of dray reads %q", key.Value+": "+want)
		if s, ok := d.Scalar(value, key.Value); ok && s != want {
			d.Fail(value, fix, "%s cannot be %s", key.Value, Quote(s))
		}
	}
}
