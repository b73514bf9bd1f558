// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"errors"
	"path/filepath"
	"testing"
	"time"

	"github.com/drayage/dray/internal/measure/rundir"
	"github.com/drayage/dray/internal/result/record"
	"github.com/drayage/dray/internal/result/report"
	"github.com/drayage/dray/test/testenv"
)

func TestResume(t *testing.T) {
	parent := t.TempDir()
	dir := filepath.Join(parent, "bench-x")
	run := testRun(t)
	run.Hash, run.Host.BootID = "h", "boot"
	s, err := Begin(dir, run, []byte("matrix"))
	testenv.Must(t, err)
	testenv.Must(t, s.Sink.Write(record.Trial{ID: "one", Run: run.ID}))
	if got := Interrupted(parent, "h", report.Program{Dray: "v1"}, "boot", 0); got != "" {
		t.Errorf("%s is at work, and was found", got)
	}
	if _, err := Resume(dir); err == nil {
		t.Error("two processes write to one directory")
	}
	testenv.Must(t, s.Close())
	for _, c := range []struct {
		hash, dray, boot string
		seed             uint64
		want             string
	}{
		{"h", "v1", "boot", 0, dir}, {"other", "v1", "boot", 0, ""}, {"h", "v2", "boot", 0, ""}, {"h", "v1", "later", 0, ""},
		{"h", "v1", "boot", run.Seed, dir}, {"h", "v1", "boot", run.Seed + 1, ""},
	} {
		if got := Interrupted(parent, c.hash, report.Program{Dray: c.dray}, c.boot, c.seed); got != c.want {
			t.Errorf("%+v: found %q", c, got)
		}
	}
	s, err = Resume(dir)
	testenv.Must(t, err)
	if !s.Done["one"] || s.Run.Seed != run.Seed || len(s.Run.Rows) != len(run.Rows) {
		t.Errorf("done %v, run %+v", s.Done, s.Run)
	}
	s.Run.Finished = time.Now()
	testenv.Must(t, errors.Join(s.Save(), s.Close()))
	if _, err := Resume(dir); !errors.Is(err, rundir.ErrFinished) {
		t.Errorf("error %v", err)
	}
	if got := Interrupted(parent, "h", report.Program{Dray: "v1"}, "boot", 0); got != "" {
		t.Errorf("%s is finished, and was found", got)
	}
}
