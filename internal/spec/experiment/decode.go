// SPDX-License-Identifier: Apache-2.0

package experiment

import (
	"github.com/drayage/dray/internal/spec/parse"
	"github.com/drayage/dray/internal/spec/schema"
	"go.yaml.in/yaml/v3"
)

var fields = append(parse.Header(Kind, func(e *Experiment) (_, _ *string) { return &e.APIVersion, &e.Kind }), []parse.Field[Experiment]{
	parse.NameField("name", "an experiment's name", "What `dray bench` calls the experiment.",
		func(e *Experiment) *string { return &e.Name }).Must(),
	parse.TextField("title", "Its subject.", func(e *Experiment) *string { return &e.Title }).Must(),
	parse.TextField("source", "Where it was published.",
		func(e *Experiment) *string { return &e.Source }).Must(),
	{
		Name: "notes",
		Doc:  "Contradictions in the publication, and what concerns all rows.",
		Form: schema.List(schema.Text(), 0, 0),
		Decode: func(d *parse.Decoder, n *yaml.Node, e *Experiment) {
			d.List(n, "notes", func(item *yaml.Node) {
				if s, ok := d.Text(item, "a note"); ok {
					e.Notes = append(e.Notes, s)
				}
			})
		},
	},
	{Name: "rows", Required: true, Doc: "The figures.", Form: schema.List(schema.Ref("row"), 0, 0), Decode: decodeRows},
	{Name: "claims", Doc: "Relations that should hold on any machine.",
		Form: schema.List(schema.Ref("claim"), 0, 0), Decode: decodeClaims},
}...)

// Parse reads and validates an experiment; file is the name for errors. The error, if
// any, is an Errors with every fault, by position.
func Parse(file string, data []byte) (*Experiment, error) {
	return parse.Document(file, data, Kind, "an experiment", fields, &Experiment{File: file}, checkClaims)
}

// Is reports whether a file says that it is an experiment, even if it has faults.
func Is(data []byte) bool {
	root, fault := parse.ReadYAML("", data, Kind)
	if fault != nil || root.Kind != yaml.MappingNode {
		return false
	}
	for i := 0; i+1 < len(root.Content); i += 2 {
		if root.Content[i].Value == "kind" {
			return root.Content[i+1].Value == Kind
		}
	}
	return false
}
