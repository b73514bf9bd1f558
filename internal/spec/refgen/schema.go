// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// schema is the part of a JSON Schema that the reference shows.
type schema struct {
	Title       string      `json:"title"`
	Description string      `json:"description"`
	Type        any         `json:"type"` // a name, or a list of names
	Ref         string      `json:"$ref"`
	Enum        []string    `json:"enum"`
	Const       any         `json:"const"`
	Default     any         `json:"default"`
	Minimum     *int        `json:"minimum"`
	Maximum     *int        `json:"maximum"`
	Required    []string    `json:"required"`
	Properties  members     `json:"properties"`
	Items       *schema     `json:"items"`
	OneOf       []schema    `json:"oneOf"`
	Additional  *additional `json:"additionalProperties"`
	Defs        members     `json:"$defs"`
}

// additional is true if an object takes any name. A schema may say so with a truth
// value or with a schema for the values.
type additional struct{ open bool }

func (a *additional) UnmarshalJSON(b []byte) error {
	a.open = string(b) != "false"
	return nil
}

// member is one named schema.
type member struct {
	name   string
	schema schema
}

// members keep the schema's order.
type members []member

func (m *members) UnmarshalJSON(b []byte) error {
	dec := json.NewDecoder(bytes.NewReader(b))
	if _, err := dec.Token(); err != nil {
		return err
	}
	for dec.More() {
		key, err := dec.Token()
		if err != nil {
			return err
		}
		next := member{name: fmt.Sprint(key)}
		if err := dec.Decode(&next.schema); err != nil {
			return fmt.Errorf("%s: %w", next.name, err)
		}
		*m = append(*m, next)
	}
	return nil
}

// isObject reports whether a definition gets a section with a table of fields.
func (s *schema) isObject() bool { return len(s.Properties) > 0 }

// anchor is the link target of a heading of the reference.
func anchor(title string) string { return "#" + strings.ReplaceAll(title, " ", "-") }

// form describes a field's value for a table.
func (s *schema) form(defs members) string {
	switch {
	case s.Ref != "":
		name := strings.TrimPrefix(s.Ref, "#/$defs/")
		i := slices.IndexFunc(defs, func(d member) bool { return d.name == name })
		if i < 0 {
			return name
		}
		return fmt.Sprintf("[%s](%s)", defs[i].schema.Title, anchor(defs[i].schema.Title))
	case len(s.Enum) > 0:
		return "`" + strings.Join(s.Enum, "`, `") + "`"
	case s.Const != nil:
		return fmt.Sprintf("`%v`", s.Const)
	case s.Items != nil:
		return "list of " + s.Items.form(defs)
	case len(s.OneOf) > 0:
		var forms []string
		for i := range s.OneOf {
			forms = append(forms, s.OneOf[i].form(defs))
		}
		return strings.Join(forms, " or ")
	}
	return s.plainForm()
}

func (s *schema) plainForm() string {
	switch t := s.Type.(type) {
	case string:
		switch {
		case t == "string":
			return "text"
		case t == "integer" && s.Minimum != nil && s.Maximum != nil:
			return fmt.Sprintf("integer, %d to %d", *s.Minimum, *s.Maximum)
		case t == "object" && s.Additional != nil && s.Additional.open:
			return "text by name"
		}
		return t
	}
	return "text" // a value taken as written
}
