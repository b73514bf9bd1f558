// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"text/template"

	"github.com/drayage/dray/internal/spec/chain"
)

//go:embed reference.md.tmpl
var layout string

// section describes one kind of object or value.
type section struct {
	Title  string
	Text   string
	Fields []row
}

// row describes one field.
type row struct {
	Name, Form, Default, Text string
}

// reference returns the whole document.
func reference() ([]byte, error) {
	var root schema
	if err := json.Unmarshal(chain.Schema(), &root); err != nil {
		return nil, fmt.Errorf("chain schema: %w", err)
	}
	data := struct{ Objects, Values []section }{}
	data.Objects = append(data.Objects, describe(root, root.Defs))
	for _, d := range root.Defs {
		if d.schema.isObject() {
			data.Objects = append(data.Objects, describe(d.schema, root.Defs))
		} else {
			data.Values = append(data.Values, describe(d.schema, root.Defs))
		}
	}
	t, err := template.New("reference").Parse(layout)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	if err := t.Execute(&out, data); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

func describe(s schema, defs members) section {
	out := section{Title: s.Title, Text: s.Description}
	for _, p := range s.Properties {
		r := row{
			Name: p.name,
			Form: p.schema.form(defs),
			Text: strings.ReplaceAll(p.schema.Description, "|", `\|`),
		}
		switch {
		case slices.Contains(s.Required, p.name):
			r.Default = "required"
		case p.schema.Default != nil:
			r.Default = fmt.Sprintf("`%v`", p.schema.Default)
		}
		out.Fields = append(out.Fields, r)
	}
	return out
}
