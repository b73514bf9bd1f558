// SPDX-License-Identifier: Apache-2.0

package testenv

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/drayage/dray/internal/spec/inventory"
)

// recorder is a test observed from outside.
type recorder struct {
	testing.TB
	cleanups []func()
	errors   []string
	skipped  bool
}

func (r *recorder) Helper()          {}
func (r *recorder) Cleanup(f func()) { r.cleanups = append(r.cleanups, f) }
func (r *recorder) Errorf(_ string, a ...any) {
	r.errors = append(r.errors, strings.TrimSpace(a[0].(string)))
}
func (r *recorder) Fatal(...any)         { r.errors = append(r.errors, "fatal") }
func (r *recorder) Skip(...any)          { r.skipped = true }
func (r *recorder) Skipf(string, ...any) { r.skipped = true }

func (r *recorder) end() {
	for i := len(r.cleanups) - 1; i >= 0; i-- {
		r.cleanups[i]()
	}
}

func TestNoLeaks(t *testing.T) {
	Root(t)
	dir, err := os.MkdirTemp("/run", "dray-leaks-")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	defer func(before time.Duration) { leakPatience = before }(leakPatience)
	leakPatience = 0
	leaky := &recorder{TB: t}
	NoLeaks(leaky, filepath.Base(dir))
	leaky.end()
	if len(leaky.errors) != 1 || !strings.Contains(leaky.errors[0], "file "+dir) {
		t.Errorf("a directory that stayed gave %q", leaky.errors)
	}

	clean := &recorder{TB: t}
	NoLeaks(clean, filepath.Base(dir))
	clean.Cleanup(func() { os.RemoveAll(dir) })
	clean.end()
	if len(clean.errors) > 0 {
		t.Errorf("a test that cleans up gave %q", clean.errors)
	}
}

func TestNeeds(t *testing.T) {
	for _, test := range []struct {
		name            string
		strict          string
		need            func(testing.TB)
		skipped, failed bool
	}{
		{"program there", "1", func(t testing.TB) { Program(t, "sh") }, false, false},
		{"program missing", "", func(t testing.TB) { Program(t, "no-such-program") }, true, false},
		{"program missing, strict", "1", func(t testing.TB) { Program(t, "no-such-program") }, true, true},
		{"file there", "1", func(t testing.TB) { File(t, "/proc/self") }, false, false},
		{"file missing", "", func(t testing.TB) { File(t, "/no/such/file") }, true, false},
		{"file missing, strict", "1", func(t testing.TB) { File(t, "/no/such/file") }, true, true},
		{"root, strict, unit tests alone", "1", Root, true, false},
		{"kernel lacks it, strict", "1", func(t testing.TB) { Kernel(t, inventory.Item{Status: inventory.Missing}) }, true, false},
		{"kernel has it", "", func(t testing.TB) { Kernel(t, inventory.Item{Status: inventory.NeverRun}) }, false, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Setenv("DRAY_TEST_STRICT", test.strict)
			t.Setenv("DRAY_TEST_UNIT", "1")
			r := &recorder{TB: t}
			test.need(r)
			if r.skipped != test.skipped || len(r.errors) > 0 != test.failed {
				t.Errorf("skipped %v, errors %v", r.skipped, r.errors)
			}
		})
	}
}
