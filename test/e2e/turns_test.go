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
)

// measuring starts `dray run` and waits until it measures.
func (b *bench) measuring(chain, out string) (*exec.Cmd, *bytes.Buffer) {
	b.t.Helper()
	cmd := b.command(context.Background(), "run", b.file(pair{Name: chain}.yaml()), "--rounds", "3", "--duration", "2s", "--out", out)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	if err := cmd.Start(); err != nil {
		b.t.Fatal(err)
	}
	for end := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
		if matches, _ := filepath.Glob(filepath.Join(out, "records.jsonl")); len(matches) > 0 {
			return cmd, &stderr
		}
		if time.Now().After(end) {
			_ = cmd.Process.Kill()
			b.t.Fatal("it does not begin to measure within a minute")
		}
	}
}

// Two drays on one host measure one after the other; SIGKILL also ends a turn.
func TestMeasureInTurn(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	first, _ := b.measuring("first", filepath.Join(t.TempDir(), "first"))
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
	var said bytes.Buffer
	waiting.Stderr = &said
	if err := waiting.Start(); err != nil {
		t.Fatal(err)
	}
	time.Sleep(time.Second) // its message is the only sign that it waits
	if err := first.Process.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	_ = first.Wait()
	_ = waiting.Wait()
	if !strings.Contains(said.String(), "Waiting for dray run, process ") || !strings.Contains(said.String(), "Measuring") {
		t.Errorf("the second printed:\n%s", said.String())
	}
	b.want(0, "gc")
}

// Two drays with separate state directories do not wait, but their figures are
// marked as measured at once.
func TestMeasureAtOnce(t *testing.T) {
	t.Parallel()
	b, other := newBench(t), newBench(t)
	first, _ := b.measuring("one", filepath.Join(t.TempDir(), "one"))
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
