// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/drayage/dray/test/testenv"
)

// nobody is a user without privileges.
const nobody = 65534

// asNobody runs dray as an ordinary user, in that user's directory.
func asNobody(t *testing.T, dir, state string, args ...string) result {
	t.Helper()
	cmd := exec.CommandContext(context.Background(), program, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "DRAY_STATE="+state, "HOME="+dir)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	var stdout, stderr strings.Builder
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	var exit *exec.ExitError
	if err := cmd.Run(); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return result{cmd.ProcessState.ExitCode(), stdout.String(), stderr.String()}
}

// nobodysDir is a directory that the ordinary user can write to.
func nobodysDir(t *testing.T) string {
	t.Helper()
	testenv.Root(t)
	dir, err := os.MkdirTemp("", "dray-e2e-nobody-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.Chown(dir, nobody, nobody); err != nil {
		t.Fatal(err)
	}
	return dir
}

// Read-only commands work for an ordinary user, even if there are chains of root,
// which such a user cannot see.
func TestWithoutRoot(t *testing.T) {
	t.Parallel()
	dir, state := nobodysDir(t), t.TempDir()
	if err := os.Chmod(state, 0o711); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(example("f1-split.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "chain.yaml")
	if err := os.WriteFile(file, text, 0o644); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ line, want string }{
		{"doctor", "not tried: only root can"}, {"doctor --json", `"schema": "dray.inventory/1"`}, {"doctor --fix", "to do"},
		{"plan " + file, "feasible"}, {"plan --json " + file, `"schema": "dray.plan/1"`},
		{"bench --list", "quick"}, {"bench quick --dry-run", "to be measured"}, {"bench --all --dry-run", "v19-switches"},
		{"image", "iperf"}, {"--version", "dray"}, {"up --help", "Usage"},
	} {
		r := asNobody(t, dir, state, strings.Fields(c.line)...)
		if r.Code != 0 || !strings.Contains(r.Stdout, c.want) {
			t.Errorf("dray %s: %s", c.line, r)
		}
	}
	for _, line := range []string{
		"run chain.yaml", "up chain.yaml", "status", "verify c", "logs c f", "exec c f true", "relink c l veth", "down c", "gc",
		"bench quick", "bench --resume .", "calibrate", "top", "capture c f.p", "metrics", "image iperf", "daemon c", "lab -- true",
		"doctor --fix --apply", "doctor --revert",
	} {
		r := asNobody(t, dir, state, strings.Fields(line)...)
		if want := "dray: must be root; try: sudo " + program + " " + line + "\n"; r.Code != 1 || r.Err != want || r.Stdout != "" {
			t.Errorf("dray %s: %s", line, r)
		}
		fields := strings.Fields(line)
		r = asNobody(t, dir, state, append([]string{"--json"}, fields...)...)
		got := decode[struct {
			Schema, Error, Fix string
			Exit               int
		}](t, r)
		if r.Code != 1 || got.Exit != 1 || got.Schema != "dray.error/1" || got.Error != "must be root" || got.Fix != "sudo "+program+" --json "+line {
			t.Errorf("dray --json %s: %s", line, r)
		}
	}
}

// Any user can print the report of root's run, without writing its page, and two
// can write the page at once.
func TestReportAgain(t *testing.T) {
	t.Parallel()
	b, dir := newBench(t), nobodysDir(t)
	run := filepath.Join(dir, "run")
	b.dray("run", b.file(pair{Name: "again"}.yaml()), "--rounds", "1", "--duration", "1s", "--out", run) // whatever its verdict
	r := asNobody(t, dir, dir, "report", run)
	if r.Code != 0 || !strings.Contains(r.Stdout, "veth") || !strings.Contains(r.Err, "was not written") || !strings.Contains(r.Err, "permission denied") {
		t.Errorf("%s", r)
	}
	r = asNobody(t, dir, dir, "report", run, "--json")
	if got := decode[struct{ Schema string }](t, r); r.Code != 0 || got.Schema != "dray.run/2" {
		t.Errorf("%s", r)
	}
	results := make(chan result)
	for range 8 {
		go func() { results <- b.dray("report", run) }()
	}
	for range 8 {
		if r := <-results; r.Code != 0 || r.Err != "" {
			t.Errorf("one of several at once: %s", r)
		}
	}
	entries, err := os.ReadDir(run)
	for _, e := range entries {
		if info, err := e.Info(); e.Name() == ".lock" && err == nil && info.Mode().Perm() == 0o600 {
			continue // nobody but root can lock the run
		}
		if strings.HasPrefix(e.Name(), ".") || strings.HasSuffix(e.Name(), ".new") {
			t.Errorf("%s is left in the run's directory", e.Name())
		}
	}
	if err != nil || len(entries) < 5 {
		t.Errorf("the directory holds %v: %v", entries, err)
	}
}
