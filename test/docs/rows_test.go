// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"regexp"
	"slices"
	"testing"

	"github.com/drayage/dray/experiments"
	"github.com/drayage/dray/internal/spec/experiment"
)

// namedRow is a row as guides name it: `EXPERIMENT/ROW`.
var namedRow = regexp.MustCompile("`((?:i15|k17|m15|n16|v19)[a-z0-9-]*)/([a-z0-9-]+)`")

// The rows of published experiments that a guide names are there.
func TestRowsThatGuidesName(t *testing.T) {
	found := 0
	for _, name := range documents(t) {
		for _, m := range namedRow.FindAllStringSubmatch(read(t, name), -1) {
			found++
			e, err := experiments.Find(m[1])
			if err != nil || e == nil {
				t.Errorf("%s: there is no experiment %s: %v", name, m[1], err)
				continue
			}
			if !slices.ContainsFunc(e.Rows, func(r experiment.Row) bool { return r.Name == m[2] }) {
				t.Errorf("%s: experiment %s has no row %s", name, m[1], m[2])
			}
		}
	}
	if found < 5 {
		t.Errorf("only %d rows are named, those of OpenStack are five", found)
	}
}
