// SPDX-License-Identifier: Apache-2.0

package rundir

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/drayage/dray/internal/result/record"
	"github.com/drayage/dray/test/testenv"
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

// TestADirectoryOfOthersIsLeftAlone: a run whose directory is gone writes nothing into one
// that another run, or another user, has made in its place.
func TestADirectoryOfOthersIsLeftAlone(t *testing.T) {
	another := func(t *testing.T, dir string) (still func() bool) {
		s, err := layout.Begin(dir, &state{Name: "another"}, nil)
		must(t, err)
		must(t, s.Close()) // it has finished, or was killed
		return func() bool {
			s, err := layout.Resume(dir)
			must(t, err)
			must(t, s.Close())
			return s.Run.Name == "another"
		}
	}
	stranger := func(t *testing.T, dir string) (still func() bool) {
		testenv.Root(t)
		must(t, os.Mkdir(dir, 0o755))
		must(t, os.Lchown(dir, 12345, 12345))
		return func() bool {
			entries, err := os.ReadDir(dir)
			must(t, err)
			return len(entries) == 0
		}
	}
	linked := func(t *testing.T, dir string) (still func() bool) {
		must(t, os.Symlink(t.TempDir(), dir))
		return func() bool {
			entries, err := os.ReadDir(dir)
			must(t, err)
			return len(entries) == 0
		}
	}
	for name, put := range map[string]func(*testing.T, string) func() bool{"another run": another, "another user": stranger, "a link": linked} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("TMPDIR", t.TempDir())
			dir := filepath.Join(t.TempDir(), "run")
			s := begun(t, dir)
			must(t, s.Sink.Write(record.Trial{ID: "before", Run: "x"}))
			must(t, os.RemoveAll(dir))
			still := put(t, dir)
			for _, id := range []string{"between", "after"} {
				must(t, s.Save())
				must(t, s.Sink.Write(record.Trial{ID: id, Run: "x"}))
			}
			must(t, s.Close())
			if s.Path == dir || s.Rescued == nil || !still() {
				t.Errorf("%v, in %s", s.Rescued, s.Path)
			}
			wantWhole(t, name, s.Path)
		})
	}
}

// TestSaveFollowsNoLink that another user has made in the run's directory.
func TestSaveFollowsNoLink(t *testing.T) {
	dir, victim := filepath.Join(t.TempDir(), "run"), filepath.Join(t.TempDir(), "victim")
	s := begun(t, dir)
	must(t, os.WriteFile(victim, []byte("whole"), 0o644))
	must(t, os.Symlink(victim, filepath.Join(dir, layout.StateFile+".new")))
	must(t, s.Save())
	must(t, s.Close())
	if text, err := os.ReadFile(victim); err != nil || string(text) != "whole" || s.Rescued != nil || s.Path != dir {
		t.Errorf("%q, %v; %v in %s", text, err, s.Rescued, s.Path)
	}
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
