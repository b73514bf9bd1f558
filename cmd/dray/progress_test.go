// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"testing"
	"time"
)

// A pipe gets each line that stays, and one in a minute of those that a terminal would replace.
func TestProgressInAPipe(t *testing.T) {
	var out bytes.Buffer
	a := &app{err: &out}
	a.progress("  trial 1")
	a.progress("Measuring")
	a.progress("  trial 2")
	a.silence.since = time.Now().Add(-silenceAtMost)
	a.progress("  trial 3")
	a.progress("  trial 4")
	if got, want := out.String(), "Measuring\n  trial 3\n"; got != want {
		t.Errorf("got %q, not %q", got, want)
	}
}
