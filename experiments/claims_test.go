// SPDX-License-Identifier: Apache-2.0

package experiments

import (
	"maps"
	"regexp"
	"testing"

	"github.com/drayage/dray/internal/spec/experiment"
)

// ownClaims are how many claims of each experiment are in no source: a page that is
// forgotten would make a source's conclusion look like ours.
var ownClaims = map[string]int{"i15-kernel-face": 1, "i15-limits": 1, "k17-fig16": 3, "k17-fig17": 3, "k17-fig6": 3, "k17-one-way": 1, "m15-fig2": 2, "n16": 2}

// place is a page, or a section of a source without page numbers.
var place = regexp.MustCompile(`^(p\. [0-9]+|section [0-9IV]+([.-][0-9A-Z]+)?)$`)

func TestClaimsCiteTheirSource(t *testing.T) {
	own, cited := map[string]int{}, map[string]int{}
	for _, name := range Names() {
		e, err := Find(name)
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

// contradicted are the conclusions that their source's own figures contradict, with the
// number of comparisons that they contradict.
var contradicted = map[string]int{
	"CoDel and FQ-CoDel have the least jitter: VMs over the Linux bridge": 2, // FIFO has no more than FQ-CoDel
	"HTB and HFSC have the most jitter: VMs over the Linux bridge":        1, // SFQ has more than HFSC
	"The bridge has less jitter than Open vSwitch with containers":        1, // not under CoDel
}

// TestConclusionsAgreeWithPublishedFigures: a claim must not have its rows the wrong way
// around.
func TestConclusionsAgreeWithPublishedFigures(t *testing.T) {
	got, agreed := map[string]int{}, 0
	for _, name := range Names() {
		e, err := Find(name)
		if err != nil {
			t.Fatal(err)
		}
		values := map[string]float64{}
		for _, r := range e.Rows {
			values[r.Name] = r.Value
		}
		for _, c := range e.Claims {
			for _, one := range c.Comparisons() {
				a, b := values[one.A], values[one.B]
				switch {
				case c.Page == "" || a == 0 || b == 0:
				case agrees(one, a/b):
					agreed++
				default:
					got[c.Text]++
				}
			}
		}
	}
	if !maps.Equal(got, contradicted) {
		t.Errorf("contradicted by the source's figures: %v, want %v", got, contradicted)
	}
	if agreed < 100 {
		t.Errorf("only %d comparisons have published figures", agreed)
	}
}

func agrees(c experiment.Comparison, ratio float64) bool {
	if c.Within > 0 {
		return ratio <= 1+float64(c.Within) && ratio >= 1/(1+float64(c.Within))
	}
	return ratio < 1/c.Times
}
