// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"
	"time"

	"github.com/drayage/dray/internal/link/broker"
)

// TestWhyACaptureHasNotBegun: a process that does not answer has the port open.
func TestWhyACaptureHasNotBegun(t *testing.T) {
	ends := []broker.EndStatus{{Function: "a", Port: "p0", Connected: true}, {Function: "b", Port: "p0"}}
	links := []broker.LinkStatus{{Name: "ab", Ends: ends}}
	for function, want := range map[string]string{
		"a": "the process that has port a.p0 open did not answer within 1s",
		"b": "no process opened port b.p0 within 1s",
	} {
		if got := unopened(links, function, "p0", time.Second); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
