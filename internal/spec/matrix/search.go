// SPDX-License-Identifier: Apache-2.0

package matrix

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/drayage/dray/internal/spec/parse"
	"github.com/drayage/dray/internal/spec/schema"
	"github.com/drayage/dray/internal/spec/units"
	"go.yaml.in/yaml/v3"
)

// Search holds the goals of searched loads. The names are RFC 9971's goal attributes;
// the trial length is the matrix's.
type Search struct {
	// Width is how close the bounds of a rate must be: (upper − lower) / upper.
	Width units.Ratio `json:"width,omitempty"`
	// Sum is the total trial time that decides a load, for NDR and PDR.
	Sum units.Duration `json:"sum,omitempty"`
	// Exceed is the share of that time in trials that may lose more, for NDR and PDR.
	Exceed units.Ratio `json:"exceed,omitempty"`
	// Loss is the loss ratio that PDR allows.
	Loss units.Ratio `json:"loss,omitempty"`
	// Verify is the most trials of a load in binary search, until one has no loss: 1 is
	// RFC 2544, more is loss verification (ETSI GS NFV-TST 009 §12.3.3).
	Verify int `json:"verify,omitempty"`
}

// Defaults and limits of a matrix's search.
const (
	defaultWidth  = units.Ratio(0.02)
	finestWidth   = units.Ratio(0.001)
	defaultSum    = 3 // trials
	longestSum    = 100
	defaultExceed = units.Ratio(0.5)
	defaultLoss   = units.Ratio(0.005)
	maxVerify     = 10
)

var searchFields = []parse.Field[Search]{
	{
		Name: "width",
		Doc:  "How close the bounds of a rate must be, (upper − lower) / upper: at least 0.1 %.",
		Form: schema.Ref("ratio").Default("2%"),
		Decode: func(d *parse.Decoder, n *yaml.Node, s *Search) {
			if w, ok := parse.Quantity(d, n, "width", units.ParseRatio); ok && w < finestWidth {
				d.Fail(n, "write 0.1% or more", "the trials cannot bring bounds within %s of each other", w)
			} else if ok {
				s.Width = w
			}
		},
	},
	parse.PositiveField("sum", "The total trial time that decides a load, for `ndr` and `pdr`: 1 to 100 trials. Default: three trials.",
		schema.Ref("duration"), units.ParseDuration, func(s *Search) *units.Duration { return &s.Sum }),
	parse.QuantityField("exceed", "The share of that time in trials that may lose more, for `ndr` and `pdr`; 0: none.",
		schema.Schema{{Name: "anyOf", Value: []any{schema.Schema{{Name: "const", Value: 0}}, schema.Schema{{Name: "$ref", Value: "#/$defs/ratio"}}}}}.Default("50%"), parseExceed, func(s *Search) *units.Ratio { return &s.Exceed }),
	parse.QuantityField("loss", "The loss ratio that `pdr` allows.",
		schema.Ref("ratio").Default("0.5%"), units.ParseRatio, func(s *Search) *units.Ratio { return &s.Loss }),
	parse.IntegerField("verify", "The maximum number of trials of a load for `rfc2544`, until one has no loss: 1 is RFC 2544, more is loss verification (ETSI GS NFV-TST 009).",
		1, maxVerify, func(s *Search) *int { return &s.Verify }).Default(1),
}

// parseExceed reads a ratio that may be 0: then no trial may lose more.
func parseExceed(text string) (units.Ratio, error) {
	if text == "0" || text == "0%" {
		return 0, nil
	}
	return units.ParseRatio(text)
}

// decodeSearch reads the goals of searches, or the defaults if the matrix has none. It
// needs the trial length.
func decodeSearch(d *parse.Decoder, n *yaml.Node, b *Matrix) {
	b.Search = Search{Width: defaultWidth, Sum: defaultSum * b.Trial, Exceed: defaultExceed, Loss: defaultLoss, Verify: 1}
	if n == nil || parse.IsNull(parse.Deref(n)) {
		return
	}
	values := parse.Object(d, n, "a search", searchFields, &b.Search)
	if values == nil {
		return
	}
	if sum := values["sum"]; sum != nil && b.Search.Sum > 0 && b.Trial > 0 && (b.Search.Sum < b.Trial || b.Search.Sum/longestSum > b.Trial) {
		d.Fail(sum, fmt.Sprintf("write one trial to %d", longestSum), "a sum of %s does not fit trials of %s", b.Search.Sum, b.Trial)
	}
	for _, f := range searchFields {
		if value := values[f.Name]; value != nil && !anySearched(b.Loads, searchedBy[f.Name]) {
			d.Fail(value, "remove it, or add "+parse.Either(searchedBy[f.Name])+" to the loads", "no load of the matrix uses %s", parse.Quote(f.Name))
		}
	}
}

// searchedBy lists the loads that each search field is for.
var searchedBy = map[string][]string{
	"width": {LoadNDR, LoadPDR, LoadRFC2544}, "sum": {LoadNDR, LoadPDR}, "exceed": {LoadNDR, LoadPDR},
	"loss": {LoadPDR}, "verify": {LoadRFC2544},
}

func anySearched(loads []Load, names []string) bool {
	for _, load := range loads {
		if load.Search != "" && slices.Contains(names, load.Search) {
			return true
		}
	}
	return false
}

// checkShares refuses shares of a PDR that is not searched for.
func checkShares(d *parse.Decoder, b *Matrix, loads *yaml.Node) {
	shares := false
	for _, load := range b.Loads {
		if load == (Load{Search: LoadPDR}) {
			return
		}
		shares = shares || load.OfPDR
	}
	if shares {
		d.Fail(loads, "add pdr to them", "the loads have shares of PDR, but no PDR")
	}
}

// sharesPDR is the suffix of a load that is a share of PDR.
const sharesPDR = "%pdr"

// parseShare reads a share of PDR in whole percent, such as "10%pdr".
func parseShare(text string) (Load, error) {
	number := strings.TrimSuffix(text, sharesPDR)
	n, err := strconv.Atoi(number)
	if err != nil || strconv.Itoa(n) != number || n < 0 || n > 99 {
		return Load{}, &parse.Error{Text: "a share of PDR cannot be " + parse.Quote(text), Fix: `write "0%pdr" (an idle link) to "99%pdr"`}
	}
	return Load{OfPDR: true, Percent: n}, nil
}
