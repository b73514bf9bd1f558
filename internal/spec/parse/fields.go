// SPDX-License-Identifier: Apache-2.0

package parse

import (
	"github.com/drayage/dray/internal/spec/schema"
	"go.yaml.in/yaml/v3"
)

// The constructors below make the usual fields. at is where a field's value goes; a
// value with a fault changes nothing there. Errors call the value by the field's name.

// Must is the field, as one that every object needs.
func (f Field[T]) Must() Field[T] {
	f.Required = true
	return f
}

// Called is the field with another noun for its value in errors.
func (f Field[T]) Called(noun string) Field[T] {
	f.noun = noun
	return f
}

// As is the field with another form in the schema.
func (f Field[T]) As(form schema.Schema) Field[T] {
	f.Form = form
	return f
}

// Default is the field with a default in the schema.
func (f Field[T]) Default(value any) Field[T] { return f.As(f.Form.Default(value)) }

// ValueField is a field of which read reports whether it could be read.
func ValueField[T, V any](name, doc string, form schema.Schema, read func(d *Decoder, n *yaml.Node, what string) (V, bool), at func(*T) *V) Field[T] {
	return Field[T]{Name: name, Doc: doc, Form: form, noun: name, read: func(d *Decoder, n *yaml.Node, what string, to *T) {
		if v, ok := read(d, n, what); ok {
			*at(to) = v
		}
	}}
}

// ReadField is a field whose reader knows its noun, and returns a value in any case.
func ReadField[T, V any](name, doc string, form schema.Schema, read func(*Decoder, *yaml.Node) V, at func(*T) *V) Field[T] {
	return ValueField(name, doc, form, func(d *Decoder, n *yaml.Node, _ string) (V, bool) { return read(d, n), true }, at)
}

// Header are the fields that begin every document.
func Header[T any](kind string, at func(*T) (apiVersion, ownKind *string)) []Field[T] {
	return []Field[T]{
		{Name: "apiVersion", Required: true, Doc: "The version of this format.", Form: schema.Const(APIVersion), Decode: func(_ *Decoder, _ *yaml.Node, to *T) {
			version, _ := at(to)
			*version = APIVersion
		}},
		{Name: "kind", Required: true, Doc: "The kind of document.", Form: schema.Const(kind), Decode: func(_ *Decoder, _ *yaml.Node, to *T) {
			_, own := at(to)
			*own = kind
		}},
	}
}

// NameField is a name (Decoder.Name).
func NameField[T any](name, noun, doc string, at func(*T) *string) Field[T] {
	return ReadField(name, doc, schema.Pattern(NamePattern.String()), func(d *Decoder, n *yaml.Node) string { return d.Name(n, noun) }, at)
}

// TextField is text that is not empty.
func TextField[T any](name, doc string, at func(*T) *string) Field[T] {
	return ValueField(name, doc, schema.Text(), (*Decoder).Text, at)
}

// BooleanField is true or false.
func BooleanField[T any](name, doc string, at func(*T) *bool) Field[T] {
	return ValueField(name, doc, schema.Bool(), (*Decoder).Boolean, at)
}

// IntegerField is a whole number between low and high.
func IntegerField[T any](name, doc string, low, high int, at func(*T) *int) Field[T] {
	return ValueField(name, doc, schema.Integer(low, high), func(d *Decoder, n *yaml.Node, what string) (int, bool) {
		return d.Integer(n, what, low, high)
	}, at)
}

// ChoiceField is one of a few words.
func ChoiceField[T any, V ~string](name, doc string, words []V, at func(*T) *V) Field[T] {
	return ValueField(name, doc, schema.Enum(words), func(d *Decoder, n *yaml.Node, what string) (V, bool) {
		return Choice(d, n, what, words)
	}, at)
}

// QuantityField is a value with a unit.
func QuantityField[T, V any](name, doc string, form schema.Schema, parse func(string) (V, error), at func(*T) *V) Field[T] {
	return ValueField(name, doc, form, func(d *Decoder, n *yaml.Node, what string) (V, bool) { return Quantity(d, n, what, parse) }, at)
}

// PositiveField is a quantity greater than 0.
func PositiveField[T any, V ~int64 | ~uint64](name, doc string, form schema.Schema, parse func(string) (V, error), at func(*T) *V) Field[T] {
	return ValueField(name, doc, form, func(d *Decoder, n *yaml.Node, what string) (V, bool) { return Positive(d, n, what, parse) }, at)
}

// WordsField is a list of words, without duplicates.
func WordsField[T any, V ~string](name, doc string, words []V, at func(*T) *[]V) Field[T] {
	return listField(name, doc, schema.Enum(words), func(d *Decoder, n *yaml.Node, what string) []V { return Words(d, n, what, words) }, at)
}

// ParsedField is a list of values from plain text of that form, without duplicates.
func ParsedField[T any, V comparable](name, doc string, form schema.Schema, parse func(string) (V, error), at func(*T) *[]V) Field[T] {
	return listField(name, doc, form, func(d *Decoder, n *yaml.Node, what string) []V { return Parsed(d, n, what, parse) }, at)
}

func listField[T, V any](name, doc string, item schema.Schema, read func(*Decoder, *yaml.Node, string) []V, at func(*T) *[]V) Field[T] {
	return ValueField(name, doc, schema.Set(item, 1, maxListed), func(d *Decoder, n *yaml.Node, what string) ([]V, bool) {
		return read(d, n, what), true
	}, at)
}

// Document reads a whole document of that kind into blank; what names it in errors: "a
// chain". Of a document of another kind or version it says only that. check then checks
// the rules between fields. The error, if any, is an Errors with every fault, by position.
func Document[T any](file string, data []byte, kind, what string, fields []Field[T], blank *T, check func(*Decoder, *T, map[string]*yaml.Node)) (*T, error) {
	d, root, fault := Open(file, data, kind)
	if fault != nil {
		return nil, Errors{fault}
	}
	if d.checkVersion(root); len(d.errs) == 0 {
		if values := Object(d, root, what, fields, blank); values != nil {
			check(d, blank, values)
		}
	}
	if errs := d.result(); errs != nil {
		return nil, errs
	}
	return blank, nil
}
