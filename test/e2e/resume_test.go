// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/drayage/dray/internal/result/report"
	"github.com/drayage/dray/test/testenv"
)

// TestRunInterruptedAndResumed interrupts a run with Ctrl-C while it measures, and
// resumes it: earlier records are kept, and the report is complete.
func TestRunInterruptedAndResumed(t *testing.T) {
	b := newBench(t)
	out := filepath.Join(t.TempDir(), "out")
	file := b.file(pair{Name: "paused", Requires: "{mtu: 1500, min_bitrate: 1Mbps}", Command: `[sleep, "1000"]`}.yaml())
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	cmd := b.command(ctx, "run", file, "--rounds", "6", "--seed", "11", "--out", out)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for len(benchRecords(t, out)) < 3 && ctx.Err() == nil {
		time.Sleep(10 * time.Millisecond)
	}
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	resume := "dray run --resume " + out
	if code := cmd.ProcessState.ExitCode(); code != 130 || !strings.Contains(stderr.String(), resume) {
		t.Errorf("exit %d: %s", code, stderr.String())
	}
	if text := stdout.String(); !strings.Contains(text, "Interrupted: ") || !strings.Contains(text, resume) {
		t.Errorf("the report does not say that the run was interrupted:\n%s", text)
	}
	page, err := os.ReadFile(filepath.Join(out, report.PageFile))
	if err != nil || !strings.Contains(string(page), "Interrupted: ") {
		t.Errorf("the page does not say that the run was interrupted: %v", err)
	}
	run := runOf(t, out)
	if !run.Interrupted || run.ExitCode != 130 || !run.Finished.IsZero() {
		t.Errorf("run.json: %+v", run)
	}
	before := benchRecords(t, out)

	again := b.want(0, "run", "--resume", out)
	if strings.Contains(again.Stdout, "Interrupted: ") || !strings.Contains(again.Stdout, "all 2 requirements met") {
		t.Errorf("%s", again)
	}
	if after := runOf(t, out); after.Interrupted || after.ExitCode != 0 || after.Finished.IsZero() || after.Seed != 11 || after.ID != run.ID {
		t.Errorf("run.json: %+v", after)
	}
	after := benchRecords(t, out)
	if len(after) <= len(before) {
		t.Errorf("%d records, of which %d were made before", len(after), len(before))
	}
	seen := map[string]bool{}
	for i, trial := range after {
		if i < len(before) && trial.ID != before[i].ID || trial.Order != i || seen[trial.ID] {
			t.Errorf("record %d is %s with order %d", i, trial.ID, trial.Order)
		}
		seen[trial.ID] = true
	}
	if r := b.want(1, "run", "--resume", out); !strings.Contains(r.Err, "finished") {
		t.Errorf("a finished run is resumed: %s", r)
	}
	b.want(2, "run", "--resume", out, "--seed", "3")
}

func runOf(t *testing.T, dir string) report.Run {
	t.Helper()
	var run report.Run
	text, err := os.ReadFile(filepath.Join(dir, report.RunFile))
	if err == nil {
		err = json.Unmarshal(text, &run)
	}
	if err != nil {
		t.Fatal(err)
	}
	return run
}

// TestARemovedDirectoryKeepsTheVerdict removes the directory of a run that measures: the
// verdicts are printed, the exit code is theirs, and the directory is whole again.
func TestARemovedDirectoryKeepsTheVerdict(t *testing.T) {
	b := newBench(t)
	out := filepath.Join(t.TempDir(), "out")
	file := b.file(pair{Name: "removed", Requires: "{mtu: 1500, min_bitrate: 1Mbps}", Command: `[sleep, "1000"]`}.yaml())
	ctx, cancel := context.WithTimeout(context.Background(), longest)
	defer cancel()
	cmd := b.command(ctx, "run", file, "--rounds", "6", "--out", out)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	testenv.Must(t, cmd.Start())
	for len(benchRecords(t, out)) < 1 && ctx.Err() == nil {
		time.Sleep(10 * time.Millisecond)
	}
	pause(t, cmd.Process)
	if run := runOf(t, out); !run.Finished.IsZero() {
		t.Fatalf("the run has finished before its directory is removed: %+v", run)
	}
	testenv.Must(t, errors.Join(os.RemoveAll(out), cmd.Process.Signal(unix.SIGCONT)))
	_ = cmd.Wait()
	const verdict = "all 2 requirements met"
	if code := cmd.ProcessState.ExitCode(); code != 0 || !strings.Contains(stdout.String(), verdict) || !strings.Contains(stderr.String(), "files of "+out+" were removed") {
		t.Errorf("exit %d: %s\n%s", code, stdout.String(), stderr.String())
	}
	if again := b.want(0, "report", out); !strings.Contains(again.Stdout, verdict) {
		t.Errorf("the directory shows %s", again)
	}
}

// pause stops a process of this one, and returns when it has stopped.
func pause(t *testing.T, p *os.Process) {
	t.Helper()
	testenv.Must(t, p.Signal(unix.SIGSTOP))
	var status unix.WaitStatus
	_, err := unix.Wait4(p.Pid, &status, unix.WUNTRACED, nil)
	for errors.Is(err, unix.EINTR) {
		_, err = unix.Wait4(p.Pid, &status, unix.WUNTRACED, nil)
	}
	if err != nil || !status.Stopped() {
		t.Fatalf("process %d does not stop: status %v, %v", p.Pid, status, err)
	}
}
