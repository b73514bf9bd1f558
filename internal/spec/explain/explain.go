// SPDX-License-Identifier: Apache-2.0

// Package explain describes the fields of a chain file with the texts of the JSON
// Schema that the decoder is tested against.
package explain

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/drayage/dray/internal/spec/chain"
)

// Field describes a field of a chain file.
type Field struct {
	Path        string   `json:"path"`
	Description string   `json:"description"`
	Value       string   `json:"value,omitempty"` // the form of its value
	OneOf       []string `json:"one_of,omitempty"`
	Default     any      `json:"default,omitempty"`
	Required    bool     `json:"required"`
	Fields      []Field  `json:"fields,omitempty"` // fields of an object, without their own fields
}

// schema is the part of a JSON Schema that Find reads.
type schema struct {
	Title       string             `json:"title"`
	Description string             `json:"description"`
	Type        any                `json:"type"`
	Ref         string             `json:"$ref"`
	Enum        []string           `json:"enum"`
	Const       any                `json:"const"`
	Default     any                `json:"default"`
	Required    []string           `json:"required"`
	Properties  map[string]*schema `json:"properties"`
	Items       *schema            `json:"items"`
	OneOf       []*schema          `json:"oneOf"`
	Defs        map[string]*schema `json:"$defs"`
}

// Find describes the field at a path such as link.requires.latency. A path starts at
// the chain (functions.ports) or at one of its objects (port); "" is the chain itself.
func Find(path string) (Field, error) {
	var root schema
	if err := json.Unmarshal(chain.Schema(), &root); err != nil {
		return Field{}, fmt.Errorf("chain schema: %w", err)
	}
	at, required := &root, false
	seen := "a chain"
	for i, name := range strings.Split(path, ".") {
		object := root.object(at)
		next := object.Properties[name]
		switch {
		case path == "":
			next = at
		case i == 0 && next == nil:
			next = root.Defs[name]
		}
		if next == nil {
			return Field{}, fmt.Errorf("%s has no field %q; it has %s", seen, name, strings.Join(root.names(object, i == 0), ", "))
		}
		at, seen, required = next, name, slices.Contains(object.Required, name)
	}
	return root.field(path, at, required), nil
}

// Paths are the paths of all objects and fields, for completion. Each starts at the
// object's name.
func Paths() []string {
	var root schema
	if json.Unmarshal(chain.Schema(), &root) != nil {
		return nil
	}
	paths := slices.Collect(maps.Keys(root.Properties))
	for name, def := range root.Defs {
		paths = append(paths, name)
		for field := range root.object(def).Properties {
			paths = append(paths, name+"."+field)
		}
	}
	slices.Sort(paths)
	return slices.Compact(paths)
}

func (root *schema) field(path string, s *schema, required bool) Field {
	value := root.deref(s)
	f := Field{Path: path, Description: s.Description, Default: s.Default, Required: required, OneOf: value.Enum}
	switch {
	case s.Ref != "" && s.Description != "":
		f.Value = value.Description
	case f.Description == "":
		f.Description = value.Description
	}
	if s.Items != nil {
		f.Value = "A list. " + root.deref(s.Items).Description
	}
	object := root.object(s)
	for _, name := range slices.Sorted(maps.Keys(object.Properties)) {
		p := object.Properties[name]
		f.Fields = append(f.Fields, Field{Path: name, Description: p.Description, Required: slices.Contains(object.Required, name)})
	}
	return f
}

func (root *schema) deref(s *schema) *schema {
	if s.Ref == "" {
		return s
	}
	return root.Defs[strings.TrimPrefix(s.Ref, "#/$defs/")]
}

// object is the schema with the fields: a list's item, a choice's object.
func (root *schema) object(s *schema) *schema {
	s = root.deref(s)
	if s.Items != nil {
		return root.object(s.Items)
	}
	for _, choice := range s.OneOf {
		if o := root.object(choice); len(s.Properties) == 0 && len(o.Properties) > 0 {
			return o
		}
	}
	return s
}

// names are the fields of an object; at the start of a path, also the objects.
func (root *schema) names(s *schema, first bool) []string {
	names := slices.Collect(maps.Keys(s.Properties))
	if first {
		names = slices.AppendSeq(names, maps.Keys(root.Defs))
	}
	slices.Sort(names)
	return slices.Compact(names)
}
