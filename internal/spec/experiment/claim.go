// SPDX-License-Identifier: Apache-2.0

package experiment

import (
	"encoding/json"

	"github.com/drayage/dray/internal/spec/units"
)

// Claim is a relation between rows that should hold on any machine, in one of three
// forms: Less and Than, Same and Within, or Order.
type Claim struct {
	Text string `json:"text"`
	// Page is where the experiment's source concludes it; empty: the claim is our own.
	Page string `json:"page,omitempty"`
	// Each row of Less is below the row of Than at the same place; with Times, at
	// least so many times.
	Less  RowNames `json:"less,omitempty"`
	Than  RowNames `json:"than,omitempty"`
	Times float64  `json:"times,omitempty"`
	// Any two rows of Same differ by at most Within.
	Same   RowNames    `json:"same,omitempty"`
	Within units.Ratio `json:"within,omitempty"`
	// Every row of a rank is below every row of the next.
	Order []RowNames `json:"order,omitempty"`
}

// RowNames are the names of rows. In a file, one name needs no list.
type RowNames []string

// MarshalJSON writes one name as text.
func (r RowNames) MarshalJSON() ([]byte, error) {
	if len(r) == 1 {
		return json.Marshal(r[0])
	}
	return json.Marshal([]string(r))
}

// UnmarshalJSON reads a name or a list of names.
func (r *RowNames) UnmarshalJSON(text []byte) error {
	var one string
	if json.Unmarshal(text, &one) == nil {
		*r = RowNames{one}
		return nil
	}
	return json.Unmarshal(text, (*[]string)(r))
}

// Comparison is one of the comparisons that a claim consists of: row A is at least
// Times below row B, or, with Within, both are the same.
type Comparison struct {
	A, B   string
	Times  float64
	Within units.Ratio
}

// Comparisons are what must hold for the claim to hold.
func (c Claim) Comparisons() []Comparison {
	var list []Comparison
	for i, a := range c.Less[:min(len(c.Less), len(c.Than))] {
		list = append(list, Comparison{A: a, B: c.Than[i], Times: max(1, c.Times)})
	}
	for i, a := range c.Same {
		for _, b := range c.Same[i+1:] {
			list = append(list, Comparison{A: a, B: b, Within: c.Within})
		}
	}
	for i := range c.Order[min(1, len(c.Order)):] {
		for _, a := range c.Order[i] {
			for _, b := range c.Order[i+1] {
				list = append(list, Comparison{A: a, B: b, Times: 1})
			}
		}
	}
	return list
}

// Rows are the names of the claim's rows, each as often as the claim names it.
func (c Claim) Rows() []string {
	var names []string
	for _, list := range append([]RowNames{c.Less, c.Than, c.Same}, c.Order...) {
		names = append(names, list...)
	}
	return names
}
