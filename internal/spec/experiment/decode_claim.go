// SPDX-License-Identifier: Apache-2.0

package experiment

import (
	"errors"
	"math"
	"slices"
	"strconv"

	"github.com/drayage/dray/internal/spec/parse"
	"github.com/drayage/dray/internal/spec/schema"
	"github.com/drayage/dray/internal/spec/units"
	"go.yaml.in/yaml/v3"
)

var (
	rowName  = schema.Pattern(parse.NamePattern.String())
	rowNames = schema.OneOf(rowName, schema.Set(rowName, 1, 0))
)

var claimFields = []parse.Field[Claim]{
	parse.TextField("text", "The claim in words.", func(c *Claim) *string { return &c.Text }).Must(),
	parse.TextField("page", "Where the source concludes this: its page, or its section if it has no page numbers. A claim without it is our own.",
		func(c *Claim) *string { return &c.Page }),
	parse.ReadField("less", "The row whose figure is the smaller one, or several rows, each for the row at the same place in `than`.",
		rowNames, decodeRowNames, func(c *Claim) *RowNames { return &c.Less }),
	parse.ReadField("than", "The row whose figure is the larger one, or several rows.",
		rowNames, decodeRowNames, func(c *Claim) *RowNames { return &c.Than }),
	parse.QuantityField("times", "How many times smaller `less` is at least.",
		schema.Schema{{Name: "type", Value: "number"}, {Name: "exclusiveMinimum", Value: 1}}, parseTimes, func(c *Claim) *float64 { return &c.Times }),
	parse.ReadField("same", "Rows whose figures are the same, each as any other.",
		schema.Set(rowName, 2, 0), decodeRowNames, func(c *Claim) *RowNames { return &c.Same }),
	parse.QuantityField("within", "How much one may exceed another and still count as the same, such as \"10%\".",
		schema.Schema{{Name: "type", Value: []string{"number", "string"}}}, units.ParseRatio, func(c *Claim) *units.Ratio { return &c.Within }),
	{
		Name: "order",
		Doc:  "A ranking, smallest first. A rank is a row, or several rows without an order among them.",
		Form: schema.List(rowNames, 2, 0),
		Decode: func(d *parse.Decoder, n *yaml.Node, c *Claim) {
			d.List(n, "order", func(item *yaml.Node) { c.Order = append(c.Order, decodeRowNames(d, item)) })
		},
	},
}

// decodeRowNames reads the name of a row, or a list of them.
func decodeRowNames(d *parse.Decoder, n *yaml.Node) RowNames {
	if parse.Deref(n).Kind != yaml.SequenceNode {
		return RowNames{d.Name(n, "a row's name")}
	}
	var names RowNames
	d.List(n, "row names", func(item *yaml.Node) { names = append(names, d.Name(item, "a row's name")) })
	return names
}

func parseTimes(text string) (float64, error) {
	v, err := strconv.ParseFloat(text, 64)
	if err != nil || !(v > 1) || math.IsInf(v, 1) {
		return 0, errors.New("times is a number above 1")
	}
	return v, nil
}

func decodeClaims(d *parse.Decoder, n *yaml.Node, e *Experiment) {
	d.List(n, "claims", func(item *yaml.Node) {
		var c Claim
		values := parse.Object(d, item, "a claim", claimFields, &c)
		switch {
		case values == nil:
		case len(c.Rows()) > mostClaimRows:
			d.Fail(item, "split it into several", "a claim names %d rows; %d is the most", len(c.Rows()), mostClaimRows)
		case !hasOneForm(values), len(c.Comparisons()) == 0:
			d.Fail(item, "write less and than, same with two rows and within, or order", "a claim states that rows are below others, that rows are the same, or their order")
		case len(c.Less) != len(c.Than):
			d.Fail(values["than"], "name as many rows in both", "less names %d rows, and than %d", len(c.Less), len(c.Than))
		default:
			e.Claims = append(e.Claims, c)
		}
	})
}

// mostClaimRows is the most rows of a claim: any two of `same` are compared.
const mostClaimRows = 64

// claimForms are the fields of each form, and those that may be with them.
var claimForms = []struct{ must, may []string }{
	{must: []string{"less", "than"}, may: []string{"times"}}, {must: []string{"same", "within"}}, {must: []string{"order"}},
}

// hasOneForm reports whether a claim has all fields of one form, and none of another.
func hasOneForm(values map[string]*yaml.Node) bool {
	has := func(name string) bool { return values[name] != nil }
	lacks := func(name string) bool { return !has(name) }
	whole := 0
	for _, form := range claimForms {
		if all := slices.Concat(form.must, form.may); slices.ContainsFunc(form.must, lacks) {
			if slices.ContainsFunc(all, has) {
				return false
			}
			continue
		}
		whole++
	}
	return whole == 1
}

// checkClaims refuses claims about rows that are missing or cannot be compared.
func checkClaims(d *parse.Decoder, e *Experiment, values map[string]*yaml.Node) {
	n := values["claims"]
	rows := map[string]Row{}
	for _, r := range e.Rows {
		rows[r.Name] = r
	}
	for _, c := range e.Claims {
		if fault := claimFault(rows, c); fault != nil {
			d.Fail(n, fault.Fix, "%s", fault.Text)
		}
	}
}

// claimFault is why a claim's rows cannot be compared; nil: they can.
func claimFault(rows map[string]Row, c Claim) *parse.Error {
	var unit string
	names := c.Rows()
	for i, name := range names {
		r, ok := rows[name]
		switch {
		case name == "": // reported already
			return nil
		case !ok:
			return &parse.Error{Text: "a claim names the row " + parse.Quote(name) + ", which does not exist", Fix: "name rows of the experiment"}
		case slices.Contains(names[:i], name):
			return &parse.Error{Text: "a claim compares " + parse.Quote(name) + " with itself", Fix: "name each row once"}
		case r.NotRun != "":
		case r.Figure.PassFail():
			return &parse.Error{Text: "a claim cannot compare pass-or-fail figures", Fix: "compare rows with figures"}
		case unit != "" && r.Figure.Unit() != unit:
			return &parse.Error{Text: "a claim compares " + unit + " with " + r.Figure.Unit() + ", of " + parse.Quote(name), Fix: "compare rows with the same unit"}
		default:
			unit = r.Figure.Unit()
		}
	}
	return nil
}
