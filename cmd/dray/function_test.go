// SPDX-License-Identifier: Apache-2.0

package main

import (
	"maps"
	"os"
	"testing"

	"github.com/drayage/dray/internal/function/runtime"
)

// TestVariablesOfExec: a name alone has its value of here, or is left out.
func TestVariablesOfExec(t *testing.T) {
	t.Setenv("DRAY_TEST_HERE", "a=b")
	t.Setenv("DRAY_TEST_GONE", "") // which restores it
	if err := os.Unsetenv("DRAY_TEST_GONE"); err != nil {
		t.Fatal(err)
	}
	got, err := variables([]string{"A=1", "EMPTY=", "DRAY_TEST_HERE", "DRAY_TEST_GONE", "A=2"})
	if want := map[string]string{"A": "2", "EMPTY": "", "DRAY_TEST_HERE": "a=b"}; err != nil || !maps.Equal(got, want) {
		t.Errorf("%q, %v; want %q", got, err, want)
	}
	for _, wrong := range []string{"", "=x", "A=\x00"} {
		if _, err := variables([]string{wrong}); err == nil {
			t.Errorf("took %q", wrong)
		}
	}
}

// TestTheTerminalsNameMayBeGiven with --env, as any other variable.
func TestTheTerminalsNameMayBeGiven(t *testing.T) {
	for want, env := range map[string]map[string]string{"xterm": {"A": "1"}, "dumb": {"TERM": "dumb"}, "": {"TERM": ""}} {
		if got := inTerminal(&runtime.Terminal{Name: "xterm"}, env); got.Name != want {
			t.Errorf("%q: %q, want %q", env, got.Name, want)
		}
	}
	if inTerminal(nil, map[string]string{"TERM": "dumb"}) != nil {
		t.Error("a terminal from nowhere")
	}
}
