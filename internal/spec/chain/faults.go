// SPDX-License-Identifier: Apache-2.0

package chain

import (
	"errors"
	"fmt"

	"go.yaml.in/yaml/v3"
)

// position is where a node stands.
func (d *decoder) position(n *yaml.Node) Position {
	return Position{File: d.file, Line: n.Line, Column: n.Column}
}

// positions are where the values of an object stand.
func (d *decoder) positions(values map[string]*yaml.Node) map[string]Position {
	at := make(map[string]Position, len(values))
	for name, n := range values {
		at[name] = d.position(n)
	}
	return at
}

// fail notes a fault of the text at n.
func (d *decoder) fail(n *yaml.Node, fix, format string, args ...any) {
	d.failAt(d.position(n), fix, format, args...)
}

func (d *decoder) failAt(at Position, fix, format string, args ...any) {
	if d.full() {
		d.unseen++
		return
	}
	d.errs = append(d.errs, &Error{Pos: at, Text: fmt.Sprintf(format, args...), Fix: fix})
}

// full reports whether further faults are only counted, so that nobody need
// make up a costly suggestion.
func (d *decoder) full() bool { return len(d.errs) >= maxErrors }

// missing notes that an object at n lacks a field.
func (d *decoder) missing(n *yaml.Node, what, name string) {
	fix := "add it"
	if value := d.versionField(name); value != "" {
		fix = fmt.Sprintf("add %q", name+": "+value)
	}
	d.fail(n, fix, "%s needs the field %q", what, name)
}

// failWith notes a fault that a parser of plain text found.
func (d *decoder) failWith(n *yaml.Node, err error) {
	fault := &Error{Text: err.Error()}
	errors.As(err, &fault)
	d.fail(n, fault.Fix, "%s", fault.Text)
}

// result is every fault found, or nil.
func (d *decoder) result() error {
	if len(d.errs) == 0 {
		return nil
	}
	for _, fault := range d.errs {
		fault.In = d.in(fault.Pos.Line)
	}
	errs := sortErrors(d.errs)
	if d.unseen > 0 {
		errs = append(errs, &Error{Pos: errs[len(errs)-1].Pos,
			Text: fmt.Sprintf("%d more faults are not shown", d.unseen), Fix: "mend those above first"})
	}
	return errs
}

// isKind reports whether n has the form that what needs, and complains if not.
func (d *decoder) isKind(n *yaml.Node, kind yaml.Kind, what string) bool {
	if n.Style&yaml.TaggedStyle != 0 {
		d.fail(n, "remove the tag", "the tag %s is not supported", quote(n.Tag))
		return false
	}
	if n.Kind == kind && !isNull(n) {
		return true
	}
	fix := map[yaml.Kind]string{
		yaml.MappingNode:  `write its fields as "name: value"`,
		yaml.SequenceNode: `write a list: "- item" on lines of their own, or [item, item]`,
		yaml.ScalarNode:   "write one value",
	}[kind]
	d.fail(n, fix, "%s cannot be %s", what, form(n))
	return false
}

// hasValue reports whether a field has a value, and complains if not.
func (d *decoder) hasValue(key, value *yaml.Node) bool {
	if !isNull(deref(value)) {
		return true
	}
	d.fail(value, "give it one, or remove the field", "the field %s has no value", quote(key.Value))
	return false
}

// form says in words what a node is.
func form(n *yaml.Node) string {
	switch {
	case isNull(n):
		return "empty"
	case n.Kind == yaml.MappingNode:
		return "a mapping"
	case n.Kind == yaml.SequenceNode:
		return "a list"
	}
	return "just " + quote(n.Value)
}

func isNull(n *yaml.Node) bool { return n.Kind == yaml.ScalarNode && n.Tag == "!!null" }

// deref follows an alias. checkBounds has shown that this ends.
func deref(n *yaml.Node) *yaml.Node {
	for n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	return n
}

func fieldNames[T any](fields []field[T]) []string {
	names := make([]string, len(fields))
	for i := range fields {
		names[i] = fields[i].name
	}
	return names
}
