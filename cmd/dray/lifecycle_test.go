// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/drayage/dray/internal/node"
	"github.com/drayage/dray/internal/plan"
	"github.com/drayage/dray/test/testenv"
)

// stateDir is an own state directory, with a directory of files for each chain.
func stateDir(t *testing.T, chains map[string]map[string]string) string {
	t.Helper()
	testenv.Root(t)
	dir := t.TempDir()
	testenv.Must(t, os.Chmod(dir, 0o711))
	t.Setenv("DRAY_STATE", dir)
	for chain, files := range chains {
		testenv.Must(t, os.Mkdir(filepath.Join(dir, chain), 0o711))
		for name, text := range files {
			testenv.Must(t, os.WriteFile(filepath.Join(dir, chain, name), []byte(text), 0o600))
		}
	}
	return dir
}

// The first lines of a journal: of a dray that was killed, and of a chain that is up.
const (
	journalLeft = `{"owner":{"process":{"pid":1,"start":1,"boot":"another"},"command":"up"}}` + "\n"
	journalUp   = journalLeft + `{"commit":true}` + "\n"
)

// succeeds runs a command that must succeed, and returns its output.
func succeeds(t *testing.T, args ...string) string {
	t.Helper()
	var out, errs bytes.Buffer
	if err := run(context.Background(), args, &out, &errs); err != nil {
		t.Errorf("dray %q: %v", args, err)
	}
	return out.String()
}

// TestGCOfLeftoversOnly: a broken chain, and the logs of chains that failed, stay until a plain
// gc.
func TestGCOfLeftoversOnly(t *testing.T) {
	dir := stateDir(t, map[string]map[string]string{"left": {"lock": "", "journal.jsonl": journalLeft}, "broken": {"lock": "", "journal.jsonl": journalUp, "state.json": "{"}})
	log := filepath.Join(dir, ".failed", "other", "log", "f.log")
	testenv.Must(t, os.MkdirAll(filepath.Dir(log), 0o700))
	testenv.Must(t, os.WriteFile(log, []byte("last words"), 0o600))
	stays := func(path string) bool {
		_, err := os.Lstat(path)
		return err == nil
	}
	if out := succeeds(t, "gc", "--leftovers"); !strings.Contains(out, "removed what left left") || strings.Contains(out, "broken") {
		t.Errorf("gc --leftovers: %s", out)
	}
	if stays(filepath.Join(dir, "left")) || !stays(filepath.Join(dir, "broken")) || !stays(log) {
		t.Error("gc --leftovers removes another set")
	}
	if out := succeeds(t, "gc"); !strings.Contains(out, "removed broken, which was broken") || stays(filepath.Join(dir, "broken")) || stays(log) {
		t.Errorf("gc: %s", out)
	}
}

// TestDownAll takes down what it can, and prints one document.
func TestDownAll(t *testing.T) {
	left := map[string]string{"lock": "", "journal.jsonl": journalLeft}
	dir := stateDir(t, map[string]map[string]string{"a": left, "b": {"lock": "", "journal.jsonl": journalUp, "state.json": "{"}, "mine": {"file": "precious"}})
	interrupted, cancel := context.WithCancel(context.Background())
	cancel()
	var out, errs bytes.Buffer
	if err := run(interrupted, []string{"down", "--all"}, &out, &errs); !errors.Is(err, context.Canceled) || out.Len() > 0 {
		t.Errorf("interrupted: %v, %s", err, out.String())
	}
	var got struct {
		Schema  string
		Removed []node.Removed
	}
	text := succeeds(t, "down", "--all", "--json")
	if err := json.Unmarshal([]byte(text), &got); err != nil || got.Schema != schemaRemoved || len(got.Removed) != 2 || len(got.Removed[1].SetAside) != 1 {
		t.Errorf("%v:\n%s", err, text)
	}
	if _, err := os.Stat(filepath.Join(dir, "mine", "file")); err != nil {
		t.Error(err)
	}
}

// TestCommandsOnDamagedState end soon, and leave no other chain behind.
func TestCommandsOnDamagedState(t *testing.T) {
	commandsOnDamage(t, func(place, damage string) bool { return damage == "garbage" || place == "pair/state.json" })
}

// TestCommandsOnEachDamage is TestCommandsOnDamagedState for each file and damage.
func TestCommandsOnEachDamage(t *testing.T) {
	commandsOnDamage(t, func(string, string) bool { return true })
}

func commandsOnDamage(t *testing.T, chosen func(place, damage string) bool) {
	dir := stateDir(t, nil)
	text := strings.Replace(pairFile, "NAME", "pair", 1)
	file, other := filepath.Join(t.TempDir(), "pair.yaml"), filepath.Join(t.TempDir(), "other.yaml")
	testenv.Must(t, os.WriteFile(file, []byte(text), 0o600))
	testenv.Must(t, os.WriteFile(other, []byte("nonsense"), 0o600))
	a := &app{out: io.Discard, err: io.Discard}
	n, err := a.node()
	testenv.Must(t, err)
	commands := [][]string{
		{"status"}, {"status", "pair", "--json"}, {"logs", "pair", "a"}, {"exec", "pair", "a", "--", "true"}, {"metrics"}, {"apply", file, "--dry-run"}, {"apply", file},
		{"up", file}, {"plan", file}, {"plan", other},
	}
	slow := []string{"apply", "up", "plan"} // they try runtimes and transports
	for _, place := range []string{"pair/lock", "pair/journal.jsonl", "pair/chain.yaml", "pair/state.json", "pair/status.json", "pair/processes.json", "pair/broker.json", "pair/log/a.log", ".failed", ".damaged", ".lock", ".measuring", ".ran", "calibration.json"} {
		for name, damage := range testenv.Damages(`{"version":99}`) {
			if !chosen(place, name) || place == "pair/log/a.log" && name == "huge" { // which is printed
				continue
			}
			job, err := a.read(context.Background(), file, false)
			testenv.Must(t, err)
			live, err := n.Create(context.Background(), "up", job.Chain, job.Source, &plan.Plan{Chain: "pair", Functions: []plan.Function{{Name: "a", Runtime: "process"}}})
			testenv.Must(t, err)
			testenv.Must(t, live.Commit())
			testenv.Must(t, os.MkdirAll(filepath.Join(dir, "pair", "log"), 0o711))
			damage(t, filepath.Join(dir, place))
			for _, command := range commands {
				if slices.Contains(slow, command[0]) && name != "garbage" && name != "a named pipe" {
					continue
				}
				ctx, cancel := context.WithTimeout(context.Background(), testenv.Patient(time.Minute))
				err := run(ctx, command, io.Discard, io.Discard)
				if ctx.Err() != nil || command[0] == "status" && err != nil || command[0] == "up" && err == nil {
					t.Errorf("%s is %s: dray %q: %v, %v", place, name, command, err, ctx.Err())
				}
				cancel()
			}
			succeeds(t, "down", "pair")
			testenv.Must(t, os.RemoveAll(filepath.Join(dir, place)))
		}
	}
}

const pairFile = `
apiVersion: drayage/v1
kind: Chain
name: NAME
functions: [{name: a, runtime: process}]
`
