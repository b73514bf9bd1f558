// SPDX-License-Identifier: Apache-2.0

package compare

import (
	"testing"

	"github.com/drayage/dray/internal/result/record"
)

// Trials of functions are no trials of a link without a name.
func TestFunctionsAreNotCompared(t *testing.T) {
	r := &Run{trials: []record.Trial{{Run: "r", Function: "f", Quantity: record.QShare}, {Run: "r", Link: "l"}}}
	if err := r.check("file"); err != nil || len(r.trials) != 1 || r.trials[0].Link != "l" {
		t.Errorf("%+v, %v", r.trials, err)
	}
	r = &Run{trials: []record.Trial{{Run: "r", Function: "f", Chain: "c"}}}
	if err := r.check("file"); err != nil || r.Chain != "c" || len(r.trials) > 0 {
		t.Errorf("%+v, %v", r, err)
	}
}
