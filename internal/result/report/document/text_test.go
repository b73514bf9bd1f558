// SPDX-License-Identifier: Apache-2.0

package document

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestWrap(t *testing.T) {
	got := wrap("ab cd efghijklm n", 5)
	if diff := cmp.Diff([]string{"ab cd", "efghi", "jklm", "n"}, got); diff != "" {
		t.Error(diff)
	}
	if got := wrap("", 5); len(got) != 1 || got[0] != "" {
		t.Errorf("wrap of nothing: %q", got)
	}
}
