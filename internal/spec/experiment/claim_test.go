// SPDX-License-Identifier: Apache-2.0

package experiment

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// claims are rows a to c of one unit and d of another, and that claim.
func claims(text string) string {
	rows := ""
	for _, name := range []string{"a", "b", "c"} {
		rows += "  - {name: " + name + ", title: T, figure: throughput, cell: {tool: tcp, transport: veth, runtime: runc}}\n"
	}
	return rows + "  - {name: d, title: T, figure: start_time, cell: {tool: start, runtime: vm}}\nclaims:\n  - " + text + "\n"
}

// TestComparisons: a claim consists of those comparisons of rows, and keeps them in JSON.
func TestComparisons(t *testing.T) {
	for text, want := range map[string]string{
		"less: a, than: b":                         "a<b",
		"less: a, than: b, times: 2.5":             "a<b*2.5",
		"less: [a, b], than: [c, d]":               "a<c b<d",
		"same: [a, b, c], within: 10%":             "a=b a=c b=c",
		"order: [a, b, c]":                         "a<b b<c",
		"order: [a, [b, c]], page: section V":      "a<b a<c",
		"order: [[a, b], [c, d]], page: 'p. 45'":   "a<c a<d b<c b<d",
		"order: [[a], b, [c, d]], page: 'table 2'": "a<b b<c b<d",
	} {
		text := strings.ReplaceAll(claims("{text: t, "+text+"}"), "figure: start_time, cell: {tool: start, runtime: vm}", "not_run: x")
		e, err := Parse("x.yaml", []byte(experimentHead+text))
		if err != nil {
			t.Error(err)
			continue
		}
		stored, err := json.Marshal(e)
		if err != nil {
			t.Fatal(err)
		}
		var again Experiment
		if err := json.Unmarshal(stored, &again); err != nil {
			t.Fatal(err)
		}
		for _, c := range []Claim{e.Claims[0], again.Claims[0]} {
			var got []string
			for _, p := range c.Comparisons() {
				sign, times := "<", ""
				if p.Within > 0 {
					sign = "="
				} else if p.Times != 1 {
					times = fmt.Sprintf("*%g", p.Times)
				}
				got = append(got, p.A+sign+p.B+times)
			}
			if strings.Join(got, " ") != want || c.Page != e.Claims[0].Page {
				t.Errorf("%s: %v (%q), want %s", text, got, c.Page, want)
			}
		}
	}
}

// TestClaimsOfOlderRuns: a directory made before claims could name several rows, and a
// claim of a damaged one.
func TestClaimsOfOlderRuns(t *testing.T) {
	var c Claim
	if err := json.Unmarshal([]byte(`{"text": "t", "less": "a", "than": "b"}`), &c); err != nil || len(c.Comparisons()) != 1 {
		t.Errorf("%v: %+v", err, c)
	}
	if err := json.Unmarshal([]byte(`{"less": ["a", "b"], "than": ["c"]}`), &c); err != nil || len(c.Comparisons()) != 1 {
		t.Errorf("%v: %+v", err, c)
	}
}

// TestBadClaims: a claim has one form, and names each row once.
func TestBadClaims(t *testing.T) {
	for text, want := range map[string]string{
		"  - {name: a, title: A, not_run: x, differs: y}\n":                          "measures nothing that could differ",
		claims("{text: t, less: a}"):                                                 "two rows and within, or order",
		claims("{text: t, same: [a, b]}"):                                            "two rows and within, or order",
		claims("{text: t, same: [a], within: 10%}"):                                  "two rows and within, or order",
		claims("{text: t, same: [a, b], within: 10%, less: a, than: b}"):             "two rows and within, or order",
		claims("{text: t, same: [a, b], within: 10%, times: 2}"):                     "two rows and within, or order",
		claims("{text: t, order: [a, b], less: a}"):                                  "two rows and within, or order",
		claims("{text: t, same: [a, zz], within: 10%}"):                              `the row "zz", which does not exist`,
		claims("{text: t, same: [a, a], within: 10%}"):                               `compares "a" with itself`,
		claims("{text: t, same: [a, b], within: 2}"):                                 "ratio",
		claims("{text: t, less: [a, b], than: c}"):                                   "less names 2 rows, and than 1",
		claims("{text: t, less: a, than: b, times: 1}"):                              "times is a number above 1",
		claims("{text: t, same: [" + strings.Repeat("a, ", 64) + "b], within: 10%}"): "a claim names 65 rows; 64 is the most",
		claims("{text: t, order: [a, [], b]}"):                                       "two rows and within, or order",
		claims("{text: t, order: [a]}"):                                              "two rows and within, or order",
		claims("{text: t, order: [a, [b, a]]}"):                                      `compares "a" with itself`,
		claims("{text: t, order: [a, [b, zz]]}"):                                     `the row "zz", which does not exist`,
		claims("{text: t, order: [a, b, [c, d]]}"):                                   "compares Mb/s with s",
	} {
		_, err := Parse("x.yaml", []byte(experimentHead+text))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
}

// TestClaimSchema: parser and schema agree on the forms of claims.
func TestClaimSchema(t *testing.T) {
	s := compiledSchema(t)
	for text, good := range map[string]bool{
		claims("{text: t, order: [a, [b, c]], page: 'p. 1'}"):         true,
		claims("{text: t, less: a, than: b, times: 2}"):               true,
		claims("{text: t, less: a}"):                                  false,
		claims("{text: t, same: [a, b], within: 10%, times: 2}"):      false,
		claims("{text: t, order: [a]}"):                               false,
		claims("{text: t, order: [a, b], same: [a, b], within: 10%}"): false,
		claims("{text: t, less: a, than: b, times: 1}"):               false,
		claims("{text: t, same: [a, b, c], within: 10%}"):             true,
	} {
		var value any
		if err := yaml.Unmarshal([]byte(experimentHead+text), &value); err != nil {
			t.Fatal(err)
		}
		err := s.Validate(value)
		_, parseErr := Parse("x.yaml", []byte(experimentHead+text))
		if (err == nil) != good || (parseErr == nil) != good {
			t.Errorf("%s: the schema says %v, the parser %v", text, err, parseErr)
		}
	}
}
