// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestManualPages writes the page of every command that help lists, and has groff set
// each without a complaint.
func TestManualPages(t *testing.T) {
	dir := t.TempDir()
	if err := run(context.Background(), []string{"man", dir}, io.Discard, io.Discard); err != nil {
		t.Fatal(err)
	}
	dray := &app{out: io.Discard, err: io.Discard}
	for _, cmd := range append(newRoot(dray).Commands(), newKubectlRoot(dray).Commands()...) {
		name := strings.ReplaceAll(cmd.CommandPath(), " ", "-") + ".1"
		text, err := os.ReadFile(filepath.Join(dir, name))
		if !cmd.IsAvailableCommand() || cmd.Name() == "help" {
			if err == nil {
				t.Errorf("%s is not for users", name)
			}
			continue
		}
		if err != nil {
			t.Error(err)
			continue
		}
		for _, section := range []string{".SH NAME\n", ".SH SYNOPSIS\n", ".SH DESCRIPTION\n", ".SH OPTIONS"} {
			if !strings.Contains(string(text), section) {
				t.Errorf("%s lacks %q", name, section)
			}
		}
	}
	for _, name := range []string{"dray.1", "kubectl-dray.1"} {
		if text, err := os.ReadFile(filepath.Join(dir, name)); err != nil || !strings.Contains(string(text), "\n  3  infeasible: ") {
			t.Errorf("%s lacks the exit codes, error %v", name, err)
		}
	}
	groff, err := exec.LookPath("groff")
	if err != nil {
		t.Skip("groff, which would set the pages, is not installed")
	}
	pages, err := filepath.Glob(filepath.Join(dir, "*.1"))
	if err != nil {
		t.Fatal(err)
	}
	for _, page := range pages {
		if out, err := exec.Command(groff, "-man", "-Tutf8", "-ww", "-K", "utf8", "-P-c", "-z", page).CombinedOutput(); err != nil || len(out) > 0 {
			t.Errorf("groff: %v: %s", err, out)
		}
	}
}

func TestRoff(t *testing.T) {
	for text, want := range map[string]string{"--a": `\-\-a`, ".x": `\&.x`, `a\b`: `a\eb`} {
		if got := roff(text); got != want {
			t.Errorf("%q becomes %q, want %q", text, got, want)
		}
	}
}
