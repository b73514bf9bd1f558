// SPDX-License-Identifier: Apache-2.0

package parse

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/drayage/dray/internal/spec/schema"
)

// ObjectSchema is the schema of a mapping that Object decodes with the same fields.
// Further keywords can add rules between fields.
func ObjectSchema[T any](title, doc string, fields []Field[T]) schema.Schema {
	var required []string
	var properties schema.Schema
	for _, f := range fields {
		if f.Required {
			required = append(required, f.Name)
		}
		property := append(schema.Schema{{Name: "description", Value: f.Doc}}, f.Form...)
		properties = append(properties, schema.Keyword{Name: f.Name, Value: property})
	}
	s := schema.Schema{{Name: "title", Value: title}}
	if doc != "" {
		s = s.With("description", doc)
	}
	s = s.With("type", "object").With("additionalProperties", false)
	if required != nil {
		s = s.With("required", required)
	}
	return s.With("properties", properties)
}

// DocumentSchema is the text of a whole document's schema, with the definitions it
// refers to. name is its file name in docs/schema.
func DocumentSchema(name string, root schema.Schema, definitions schema.Schema) []byte {
	head := schema.Schema{
		{Name: "$schema", Value: "https://json-schema.org/draft/2020-12/schema"},
		{Name: "$id", Value: "https://github.com/drayage/dray/raw/main/docs/schema/" + name},
	}
	used := referred(root, definitions)
	s := append(head, root...)
	if len(used) > 0 {
		s = s.With("$defs", used)
	}
	return mustIndent(s)
}

// referred are the definitions that a schema refers to, directly or indirectly, in the
// order of their definition.
func referred(root schema.Schema, definitions schema.Schema) schema.Schema {
	text := string(mustIndent(root))
	found := map[string]bool{}
	for grown := true; grown; {
		grown = false
		for _, d := range definitions {
			if !found[d.Name] && strings.Contains(text, `"#/$defs/`+d.Name+`"`) {
				found[d.Name], grown = true, true
				text += string(mustIndent(d.Value))
			}
		}
	}
	var used schema.Schema
	for _, d := range definitions {
		if found[d.Name] {
			used = append(used, d)
		}
	}
	return used
}

// mustIndent writes a schema for people. The tables are part of the program, so a
// failure is our bug, and every test finds it.
func mustIndent(v any) []byte {
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(v); err != nil {
		panic("schema: " + err.Error())
	}
	return out.Bytes()
}
