// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// completions are the words that a shell offers for a command line: it omits those
// without the last word as a prefix.
func completions(t *testing.T, line ...string) []string {
	t.Helper()
	var out, errs bytes.Buffer
	if err := run(context.Background(), append([]string{"__complete"}, line...), &out, &errs); err != nil {
		t.Fatalf("%v: %v", line, err)
	}
	if strings.Contains(errs.String(), "rror") {
		t.Errorf("%v: standard error: %s", line, errs.String())
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	var offered []string
	for _, word := range lines[:len(lines)-1] { // the last is a directive
		if strings.HasPrefix(word, line[len(line)-1]) {
			offered = append(offered, word)
		}
	}
	return offered
}

func TestCompletion(t *testing.T) {
	state := t.TempDir()
	t.Setenv("DRAY_STATE", state)
	for _, name := range []string{"echo", "f1-split", "Not-A-Chain"} {
		if err := os.Mkdir(filepath.Join(state, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for line, want := range map[string]string{
		"status ":             "echo f1-split",
		"down ":               "echo f1-split",
		"top ":                "echo f1-split",
		"verify ":             "echo f1-split",
		"logs echo ":          "", // damaged: it has no chain file
		"relink echo x ovs":   "ovs ovs-dpdk ovs-dray ovs-dpdk-vxlan ovs-vxlan",
		"calibrate mac":       "macvlan macvtap",
		"run --profile ":      "quick standard thorough",
		"bench --profile ":    "quick paper",
		"bench k17-fig":       "k17-fig15 k17-fig16 k17-fig17 k17-fig18 k17-fig6",
		"bench qui":           "quick",
		"plan ":               "yaml yml",
		"compare --format be": "benchstat",
		"--color ":            "always auto never",
		"version ":            "",
	} {
		argv := strings.Split(line, " ")
		got := completions(t, argv...)
		if !sameWords(got, strings.Fields(want)) {
			t.Errorf("%q is completed by %q, want %q", line, got, want)
		}
	}
}

func sameWords(a, b []string) bool {
	count := map[string]int{}
	for _, s := range a {
		count[s]++
	}
	for _, s := range b {
		count[s]--
	}
	for _, n := range count {
		if n != 0 {
			return false
		}
	}
	return true
}

// TestCompletionScripts makes the script of each shell.
func TestCompletionScripts(t *testing.T) {
	for _, shell := range []string{"bash", "zsh", "fish"} {
		var out bytes.Buffer
		if err := run(context.Background(), []string{"completion", shell}, &out, io.Discard); err != nil || !strings.Contains(out.String(), "dray") {
			t.Errorf("%s: error %v, script of %d bytes", shell, err, out.Len())
		}
	}
}
