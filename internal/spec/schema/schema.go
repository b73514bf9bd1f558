// SPDX-License-Identifier: Apache-2.0

// Package schema writes JSON Schemas (draft 2020-12). The decoder tables use it to
// describe the form of each field's value.
package schema

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
)

// Keyword is one keyword of a schema and its value, which encoding/json must be able to
// write.
type Keyword struct {
	Name  string
	Value any
}

// Schema is a schema whose keywords keep their order.
type Schema []Keyword

// MarshalJSON writes the keywords in order.
func (s Schema) MarshalJSON() ([]byte, error) {
	var out bytes.Buffer
	out.WriteByte('{')
	for i, k := range s {
		if i > 0 {
			out.WriteByte(',')
		}
		value, err := encode(k.Value)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", k.Name, err)
		}
		fmt.Fprintf(&out, "%q:%s", k.Name, value)
	}
	out.WriteByte('}')
	return out.Bytes(), nil
}

// encode does not escape <, > and &: people read descriptions.
func encode(v any) ([]byte, error) {
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return bytes.TrimSpace(out.Bytes()), err
}

// With adds a keyword to the schema.
func (s Schema) With(name string, value any) Schema {
	return append(append(Schema{}, s...), Keyword{name, value})
}

// Default adds the value of a field that a file leaves out.
func (s Schema) Default(value any) Schema { return s.With("default", value) }

// Ref refers to a named schema of the document.
func Ref(name string) Schema { return Schema{{"$ref", "#/$defs/" + name}} }

// Enum is one of several words.
func Enum[T ~string](words []T) Schema { return Schema{{"enum", words}} }

// Const is exactly this value.
func Const(value any) Schema { return Schema{{"const", value}} }

// Bool is true or false.
func Bool() Schema { return Schema{{"type", "boolean"}} }

// Integer is a whole number between low and high.
func Integer(low, high int) Schema {
	return Schema{{"type", "integer"}, {"minimum", low}, {"maximum", high}}
}

// Text is text that is not empty.
func Text() Schema { return Schema{{"type", "string"}, {"minLength", 1}} }

// Pattern is text that matches a regular expression.
func Pattern(pattern string) Schema { return Schema{{"type", "string"}, {"pattern", pattern}} }

// Quantity is a number with its unit, in a given form.
func Quantity(pattern string) Schema {
	return Schema{{"type", "string"}, {"maxLength", 32}, {"pattern", pattern}}
}

// Word is a value taken as written.
func Word() Schema { return Schema{{"type", []string{"string", "number", "boolean"}}} }

// List is a list of at least min items, and of at most max; max 0: any number.
func List(item Schema, min, max int) Schema {
	s := Schema{{"type", "array"}}
	if min > 0 {
		s = s.With("minItems", min)
	}
	if max > 0 {
		s = s.With("maxItems", max)
	}
	return s.With("items", item)
}

// Set is a list without duplicates.
func Set(item Schema, min, max int) Schema { return List(item, min, max).With("uniqueItems", true) }

// OneOf is a value that exactly one alternative accepts.
func OneOf(alternatives ...Schema) Schema { return Schema{{"oneOf", alternatives}} }

// Rules are keywords in JSON for rules between fields. The text is part of the program,
// so a mistake in it is our bug, and every test finds it.
func Rules(text string) Schema {
	dec := json.NewDecoder(strings.NewReader(text))
	next := func() json.Token {
		token, err := dec.Token()
		if err != nil {
			panic("schema: " + err.Error())
		}
		return token
	}
	var s Schema
	for next(); dec.More(); {
		key := next().(string)
		var value json.RawMessage
		if err := dec.Decode(&value); err != nil {
			panic("schema: " + err.Error())
		}
		s = append(s, Keyword{key, value})
	}
	next() // the closing brace
	return s
}

// Described adds a title and a description for readers.
func Described(title, doc string, s Schema) Schema {
	return append(Schema{{"title", title}, {"description", doc}}, s...)
}
