// SPDX-License-Identifier: Apache-2.0

package rundir

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/drayage/dray/internal/result/record"
)

// TestARemovedDirectoryIsWrittenAgain with all that was in it, and the run continues there.
func TestARemovedDirectoryIsWrittenAgain(t *testing.T) {
	for name, remove := range map[string]func(dir string) error{
		"with its parent":  func(dir string) error { return os.RemoveAll(filepath.Dir(dir)) },
		"its records":      func(dir string) error { return os.Remove(filepath.Join(dir, "records.jsonl")) },
		"a file of others": func(dir string) error { return os.Remove(filepath.Join(dir, "matrix")) },
		"but for a file made later": func(dir string) error {
			return errors.Join(os.RemoveAll(dir), os.MkdirAll(filepath.Join(dir, "log"), 0o755))
		},
	} {
		dir := filepath.Join(t.TempDir(), "out", "run")
		s := begun(t, dir)
		must(t, s.Sink.Write(record.Trial{ID: "before", Run: "x"}))
		must(t, remove(dir))
		must(t, s.Sink.Write(record.Trial{ID: "between", Run: "x"}))
		must(t, s.Save())
		if s.Rescued == nil || s.Path != dir || !AtWork(dir) {
			t.Errorf("%s: %v, in %s, locked %v", name, s.Rescued, s.Path, AtWork(dir))
		}
		must(t, s.Sink.Write(record.Trial{ID: "after", Run: "x"}))
		must(t, s.Close())
		wantWhole(t, name, dir)
	}
}

// TestABlockedDirectoryGivesWayToAnother: nothing can be written in a place where a file is.
func TestABlockedDirectoryGivesWayToAnother(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	dir := filepath.Join(t.TempDir(), "run")
	must(t, begun(t, dir).Close())
	s, err := layout.Resume(dir) // which knows the other files, too
	must(t, err)
	must(t, s.Sink.Write(record.Trial{ID: "before", Run: "x"}))
	must(t, errors.Join(os.RemoveAll(dir), os.WriteFile(dir, nil, 0o644)))
	must(t, s.Save())
	for _, id := range []string{"between", "after"} {
		must(t, s.Sink.Write(record.Trial{ID: id, Run: "x"}))
	}
	must(t, s.Save())
	must(t, s.Close())
	if s.Rescued == nil || !strings.Contains(s.Rescued.Error(), dir) || !strings.Contains(s.Rescued.Error(), s.Path) {
		t.Errorf("%v, in %s", s.Rescued, s.Path)
	}
	wantWhole(t, "blocked", s.Path)
}

func begun(t *testing.T, dir string) *Dir[state] {
	t.Helper()
	s, err := layout.Begin(dir, &state{Name: "x"}, map[string][]byte{"matrix": []byte("m")})
	must(t, err)
	must(t, s.Save())
	if s.Rescued != nil {
		t.Fatal(s.Rescued)
	}
	return s
}

// wantWhole checks that another process finds the whole run in a directory.
func wantWhole(t *testing.T, name, dir string) {
	t.Helper()
	s, err := layout.Resume(dir)
	if err != nil {
		t.Errorf("%s: %v", name, err)
		return
	}
	defer s.Close()
	text, err := os.ReadFile(filepath.Join(dir, "matrix"))
	if len(s.Earlier) != 3 || !s.Done["before"] || !s.Done["between"] || !s.Done["after"] || s.Run.Name != "x" || string(text) != "m" {
		t.Errorf("%s: %+v, with %d records and %q, %v", name, s.Run, len(s.Earlier), text, err)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
