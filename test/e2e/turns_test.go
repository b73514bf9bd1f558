// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"context"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/drayage/dray/internal/result/record"
	"github.com/drayage/dray/test/testenv"
)

// patience bounds the wait on a busy machine for steps that take seconds at most.
var patience = testenv.Patient(time.Minute)

// measuring starts `dray run` and waits until it measures. It goes on for minutes: a caller ends it.
func (b *bench) measuring(p pair, out string) (*exec.Cmd, *bytes.Buffer) {
	b.t.Helper()
	cmd := b.command(context.Background(), "run", b.file(p.yaml()), "--rounds", "50", "--duration", "2s", "--out", out)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	if err := cmd.Start(); err != nil {
		b.t.Fatal(err)
	}
	for end := time.Now().Add(patience); ; time.Sleep(50 * time.Millisecond) {
		if matches, _ := filepath.Glob(filepath.Join(out, "records.jsonl")); len(matches) > 0 {
			return cmd, &stderr
		}
		if time.Now().After(end) {
			_ = cmd.Process.Kill()
			b.t.Fatalf("it does not begin to measure within %v", patience)
		}
	}
}

// Two drays on one host measure one after the other; SIGKILL also ends a turn.
func TestMeasureInTurn(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	first, _ := b.measuring(pair{Name: "first"}, filepath.Join(t.TempDir(), "first"))
	second := b.file(pair{Name: "second"}.yaml())
	for _, args := range [][]string{{"run", second}, {"bench", "quick"}, {"calibrate", "veth"}} {
		r := b.want(1, append(args, "--no-wait", "--out", filepath.Join(t.TempDir(), "out"))...)
		for _, want := range []string{"dray run, process ", "since ", "--no-wait"} {
			if !strings.Contains(r.Err, want) {
				t.Errorf("dray %v does not print %q: %s", args, want, r)
			}
		}
	}
	b.want(1, "verify", "second", "--no-wait") // which does not exist: it reports that at once
	b.want(0, "bench", "quick", "--dry-run")

	waiting := b.command(context.Background(), "run", second, "--rounds", "1", "--duration", "1s", "--out", filepath.Join(t.TempDir(), "second"))
	var said screen
	waiting.Stderr = &said
	if err := waiting.Start(); err != nil {
		t.Fatal(err)
	}
	said.await(t, "Waiting for dray run, process ") // the only sign that it waits
	if err := first.Process.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	_ = first.Wait()
	_ = waiting.Wait()
	if !strings.Contains(said.String(), "Measuring") {
		t.Errorf("the second printed:\n%s", said.String())
	}
	b.want(0, "gc")
}

// Two drays with separate state directories do not wait, but their figures are
// marked as measured at once.
func TestMeasureAtOnce(t *testing.T) {
	t.Parallel()
	b, other := newBench(t), newBench(t)
	first, _ := b.measuring(pair{Name: "one"}, filepath.Join(t.TempDir(), "one"))
	defer func() {
		_ = first.Process.Signal(syscall.SIGTERM)
		_ = first.Wait()
	}()
	out := filepath.Join(t.TempDir(), "two")
	other.dray("run", other.file(pair{Name: "two"}.yaml()), "--rounds", "1", "--duration", "1s", "--out", out)
	trials, _, err := record.ReadFile(filepath.Join(out, "records.jsonl"))
	if err != nil || len(trials) == 0 {
		t.Fatalf("%d trials: %v", len(trials), err)
	}
	if !slices.Contains(trials[0].Marks, record.MarkParallel) {
		t.Errorf("the first trial has the marks %q", trials[0].Marks)
	}
}
