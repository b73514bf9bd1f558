// SPDX-License-Identifier: Apache-2.0

package record

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/drayage/dray/test/testenv"
)

// written is a records file of two trials, followed by a tail.
func written(t *testing.T, tail func(whole []byte) []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "records.jsonl")
	w, err := Create(path)
	testenv.Must(t, err)
	for _, id := range []string{"a", "b"} {
		testenv.Must(t, w.Write(Trial{ID: id, Bench: &Bench{Load: "max"}}))
	}
	testenv.Must(t, w.Close())
	whole, err := os.ReadFile(path)
	testenv.Must(t, err)
	testenv.Must(t, os.WriteFile(path, tail(whole), 0o644))
	return path
}

func TestContinue(t *testing.T) {
	for name, tail := range map[string]func([]byte) []byte{
		"whole":           func(b []byte) []byte { return b },
		"torn":            func(b []byte) []byte { return append(b, `{"schema":2,"id":"c","ru`...) },
		"without newline": func(b []byte) []byte { return b[:len(b)-1] },
	} {
		t.Run(name, func(t *testing.T) {
			path := written(t, tail)
			w, before, err := Continue(path)
			testenv.Must(t, err)
			if len(before) != 2 {
				t.Fatalf("%d records before, want 2", len(before))
			}
			testenv.Must(t, w.Write(Trial{ID: "d"}))
			testenv.Must(t, w.Close())
			all, warnings, err := ReadFile(path)
			if err != nil || len(warnings) > 0 || len(all) != 3 || all[2].ID != "d" {
				t.Errorf("%d records, warnings %v, error %v", len(all), warnings, err)
			}
		})
	}
}

func TestBenchOfNoTrialIsRefused(t *testing.T) {
	for _, b := range []Bench{
		{Limit: &Limit{Ring: -1}}, {Cost: &Cost{Cores: -1}}, {Ceiling: &Ceiling{Send: -1}}, {Span: &Span{Start: 2, End: 1}},
	} {
		if b.check() == nil {
			t.Errorf("%+v passes", b)
		}
	}
}
