// SPDX-License-Identifier: Apache-2.0

package experiments

import (
	"maps"
	"regexp"
	"testing"
)

// ownClaims are how many claims of each experiment are in no source: a page that is
// forgotten would make a source's conclusion look like ours.
var ownClaims = map[string]int{"i15-limits": 1, "k17-fig16": 3, "k17-fig17": 2, "k17-one-way": 1, "m15-fig2": 1, "n16": 2}

// place is a page, or a section of a source without page numbers.
var place = regexp.MustCompile(`^(p\. [0-9]+|section [0-9IV]+([.-][0-9A-Z]+)?)$`)

func TestClaimsCiteTheirSource(t *testing.T) {
	own, cited := map[string]int{}, map[string]int{}
	for _, name := range Names() {
		e, err := Published(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range e.Claims {
			switch {
			case c.Page == "":
				own[name]++
			case !place.MatchString(c.Page):
				t.Errorf("%s: %q is on %q", name, c.Text, c.Page)
			default:
				cited[e.Publication()]++
			}
		}
	}
	if !maps.Equal(own, ownClaims) {
		t.Errorf("own claims: %v, want %v", own, ownClaims)
	}
	for _, source := range []string{"I15", "K17", "M15", "N16", "V19"} {
		if cited[source] < 3 {
			t.Errorf("%s concludes %d claims", source, cited[source])
		}
	}
	if len(cited) != 5 {
		t.Errorf("claims of %v", cited)
	}
}
