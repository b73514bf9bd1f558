// SPDX-License-Identifier: Apache-2.0

package chain

import (
	"fmt"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// BenchSearch is what the loads that are searched for have to meet. The names are
// those of RFC 9971's goal attributes; the length of a trial is the matrix's.
type BenchSearch struct {
	// Width is how close the bounds of a rate must come: (upper − lower) / upper.
	Width Ratio `json:"width,omitempty"`
	// Sum is how much time of trials decides a load, of NDR and PDR.
	Sum Duration `json:"sum,omitempty"`
	// Exceed is the share of that time whose trials may lose more, of NDR and PDR.
	Exceed Ratio `json:"exceed,omitempty"`
	// Loss is the loss ratio that PDR allows.
	Loss Ratio `json:"loss,omitempty"`
	// Verify is how many trials the binary search gives a load until one is without
	// loss: 1 is RFC 2544, more is loss verification (ETSI GS NFV-TST 009 §12.3.3).
	Verify int `json:"verify,omitempty"`
}

// What a matrix means whose search leaves a field out, and how far it may go.
const (
	defaultWidth  = Ratio(0.02)
	finestWidth   = Ratio(0.001)
	defaultSum    = 3 // trials
	longestSum    = 100
	defaultExceed = Ratio(0.5)
	defaultLoss   = Ratio(0.005)
	maxVerify     = 10
)

var searchFields = []field[BenchSearch]{
	{"width", false, func(d *decoder, n *yaml.Node, s *BenchSearch) {
		if w, ok := quantity(d, n, "width", ParseRatio); ok && w < finestWidth {
			d.fail(n, "write 0.1% or more", "the trials cannot bring bounds within %s of each other", w)
		} else if ok {
			s.Width = w
		}
	}},
	{"sum", false, func(d *decoder, n *yaml.Node, s *BenchSearch) { s.Sum, _ = positive(d, n, "sum", ParseDuration) }},
	{"exceed", false, func(d *decoder, n *yaml.Node, s *BenchSearch) { s.Exceed, _ = quantity(d, n, "exceed", parseExceed) }},
	{"loss", false, func(d *decoder, n *yaml.Node, s *BenchSearch) {
		if loss, ok := quantity(d, n, "loss", ParseRatio); ok {
			s.Loss = loss
		}
	}},
	{"verify", false, func(d *decoder, n *yaml.Node, s *BenchSearch) {
		if v, ok := d.integer(n, "verify", 1, maxVerify); ok {
			s.Verify = v
		}
	}},
}

// parseExceed reads a ratio that may be 0: no trial may lose more.
func parseExceed(text string) (Ratio, error) {
	if text == "0" || text == "0%" {
		return 0, nil
	}
	return ParseRatio(text)
}

// search reads what searches have to meet, or the defaults where the matrix has
// no such field. The length of its trials must be known.
func (d *decoder) search(n *yaml.Node, b *Bench) {
	b.Search = BenchSearch{Width: defaultWidth, Sum: defaultSum * b.Trial, Exceed: defaultExceed, Loss: defaultLoss, Verify: 1}
	if n == nil || isNull(deref(n)) {
		return
	}
	values := object(d, n, "a search", searchFields, &b.Search)
	if values == nil {
		return
	}
	if sum := values["sum"]; sum != nil && b.Search.Sum > 0 && b.Trial > 0 && (b.Search.Sum < b.Trial || b.Search.Sum/longestSum > b.Trial) {
		d.fail(sum, fmt.Sprintf("write one trial to %d", longestSum), "a sum of %s does not fit trials of %s", b.Search.Sum, b.Trial)
	}
	for _, f := range searchFields {
		if value := values[f.name]; value != nil && !anySearched(b.Loads, searchedBy[f.name]) {
			d.fail(value, "remove it, or add "+either(searchedBy[f.name])+" to the loads", "no load of the matrix uses %s", quote(f.name))
		}
	}
}

// searchedBy is which loads each field of a search is of.
var searchedBy = map[string][]string{
	"width": {LoadNDR, LoadPDR, LoadRFC2544}, "sum": {LoadNDR, LoadPDR}, "exceed": {LoadNDR, LoadPDR},
	"loss": {LoadPDR}, "verify": {LoadRFC2544},
}

func anySearched(loads []BenchLoad, names []string) bool {
	for _, load := range loads {
		if load.Search != "" && contains(names, load.Search) {
			return true
		}
	}
	return false
}

// checkShares refuses shares of a rate that is not searched for.
func (d *decoder) checkShares(b *Bench, loads *yaml.Node) {
	shares := false
	for _, load := range b.Loads {
		if load == (BenchLoad{Search: LoadPDR}) {
			return
		}
		shares = shares || load.OfPDR
	}
	if shares {
		d.fail(loads, "add pdr to them", "the loads have shares of PDR, and no PDR")
	}
}

// sharesPDR ends the text of a load that is a share of PDR.
const sharesPDR = "%pdr"

// parseShare reads a share of PDR in whole per cent, such as "10%pdr".
func parseShare(text string) (BenchLoad, error) {
	number := strings.TrimSuffix(text, sharesPDR)
	n, err := strconv.Atoi(number)
	if err != nil || strconv.Itoa(n) != number || n < 0 || n > 99 {
		return BenchLoad{}, &Error{Text: "a share of PDR cannot be " + quote(text), Fix: `write "0%pdr" (an idle link) to "99%pdr"`}
	}
	return BenchLoad{OfPDR: true, Percent: n}, nil
}
