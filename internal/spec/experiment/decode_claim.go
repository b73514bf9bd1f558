// SPDX-License-Identifier: Apache-2.0

package experiment

import (
	"github.com/drayage/dray/internal/spec/parse"
	"github.com/drayage/dray/internal/spec/schema"
	"github.com/drayage/dray/internal/spec/units"
	"go.yaml.in/yaml/v3"
)

var claimFields = []parse.Field[Claim]{
	parse.TextField("text", "The claim in words.", func(c *Claim) *string { return &c.Text }).Must(),
	parse.NameField("less", "a row's name", "The row whose figure is the smaller one.",
		func(c *Claim) *string { return &c.Less }),
	parse.NameField("than", "a row's name", "The row whose figure is the larger one.",
		func(c *Claim) *string { return &c.Than }),
	{
		Name: "same",
		Doc:  "Two rows whose figures are the same.",
		Form: schema.List(schema.Pattern(parse.NamePattern.String()), 2, 2),
		Decode: func(d *parse.Decoder, n *yaml.Node, c *Claim) {
			d.List(n, "same", func(item *yaml.Node) { c.Same = append(c.Same, d.Name(item, "a row's name")) })
		},
	},
	parse.QuantityField("within", "How much either may exceed the other and still count as the same, such as \"10%\".",
		schema.Schema{{Name: "type", Value: []string{"number", "string"}}}, units.ParseRatio, func(c *Claim) *units.Ratio { return &c.Within }),
}

func decodeClaims(d *parse.Decoder, n *yaml.Node, e *Experiment) {
	d.List(n, "claims", func(item *yaml.Node) {
		var c Claim
		values := parse.Object(d, item, "a claim", claimFields, &c)
		if values == nil {
			return
		}
		ordered, same := values["less"] != nil && values["than"] != nil, len(c.Same) == 2 && values["within"] != nil
		if ordered == same || !ordered && (values["less"] != nil || values["than"] != nil) || !same && (values["same"] != nil || values["within"] != nil) {
			d.Fail(item, "write less and than, or same with two rows and within", "a claim states that one row is below another, or that two rows are the same")
			return
		}
		e.Claims = append(e.Claims, c)
	})
}

// checkClaims refuses claims about rows that are missing or cannot be compared.
func checkClaims(d *parse.Decoder, e *Experiment, values map[string]*yaml.Node) {
	n := values["claims"]
	rows := map[string]Row{}
	for _, r := range e.Rows {
		rows[r.Name] = r
	}
	for _, c := range e.Claims {
		first, second := c.Rows()
		a, okA := rows[first]
		b, okB := rows[second]
		switch {
		case first == "" || second == "": // reported already
		case !okA || !okB:
			missing := second
			if !okA {
				missing = first
			}
			d.Fail(n, "name two rows of the experiment", "a claim names the row %s, which does not exist", parse.Quote(missing))
		case first == second:
			d.Fail(n, "name two rows", "a claim compares %s with itself", parse.Quote(first))
		case a.Figure.PassFail() || b.Figure.PassFail():
			d.Fail(n, "compare rows with figures", "a claim cannot compare pass-or-fail figures")
		case a.NotRun == "" && b.NotRun == "" && a.Figure.Unit() != b.Figure.Unit():
			d.Fail(n, "compare rows with the same unit", "a claim compares %s (%s) with %s (%s)", parse.Quote(first), a.Figure.Unit(), parse.Quote(second), b.Figure.Unit())
		}
	}
}
