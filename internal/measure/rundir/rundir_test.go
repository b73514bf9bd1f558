// SPDX-License-Identifier: Apache-2.0

package rundir

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/drayage/dray/internal/result/record"
)

type state struct {
	Name     string
	Finished bool
}

var layout = &Layout[state]{
	StateFile: "state.json", RecordsFile: "records.jsonl", Known: []string{"matrix"},
	Load: func(dir string) (*state, error) {
		var s state
		text, err := os.ReadFile(filepath.Join(dir, "state.json"))
		if err == nil {
			err = json.Unmarshal(text, &s)
		}
		return &s, err
	},
	Finished: func(s *state) bool { return s.Finished },
}

func TestResumeContinuesTheRun(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	s, err := layout.Begin(dir, &state{Name: "x"}, map[string][]byte{"matrix": []byte("m")})
	if err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(filepath.Join(dir, "matrix")); err != nil || string(text) != "m" {
		t.Errorf("the additional file: %q, %v", text, err)
	}
	if _, err := layout.Resume(dir); err == nil || !AtWork(dir) {
		t.Errorf("two processes write to one directory: %v", err)
	}
	if err := errors.Join(s.Sink.Write(record.Trial{ID: "done", Run: "x"}), s.Close()); err != nil {
		t.Fatal(err)
	}
	if AtWork(dir) {
		t.Error("a closed directory is locked")
	}
	if _, err := layout.Begin(dir, &state{}, nil); err == nil {
		t.Error("a run overwrites another")
	}
	if s, err = layout.Resume(dir); err != nil || !s.Done["done"] || s.Run.Name != "x" {
		t.Fatalf("%+v, %v", s, err)
	}
	s.Run.Finished = true
	if err := errors.Join(s.Save(), s.Close()); err != nil {
		t.Fatal(err)
	}
	if _, err := layout.Resume(dir); !errors.Is(err, ErrFinished) {
		t.Errorf("a finished run is resumed: %v", err)
	}
}

// TestResumeWithoutRecords resumes a run that was killed before its first record.
func TestResumeWithoutRecords(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "state.json"), []byte("{}"), 0o644); err != nil {
		t.Fatal(err)
	}
	s, err := layout.Resume(dir)
	if err != nil {
		t.Fatal(err)
	}
	if len(s.Done) != 0 {
		t.Errorf("done %v", s.Done)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestBeginKeepsWhatIsThere(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "mine"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := layout.Begin(dir, &state{}, nil); err == nil {
		t.Error("a directory that is not empty was accepted")
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 {
		t.Errorf("and written to: %v, %v", entries, err)
	}
}

// Anybody who can read the directory can lock it, but that keeps no dray out.
func TestLockIsForItsUserAlone(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	s, err := layout.Begin(dir, &state{Name: "x"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(filepath.Join(dir, fileLock)); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the lock: %v, %v", info, err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}
