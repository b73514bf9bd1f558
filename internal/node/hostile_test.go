// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/drayage/dray/internal/host"
	"github.com/drayage/dray/test/testenv"
)

// write makes a file, and its directory, below the node's state directory.
func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(filepath.Dir(path)); err != nil {
			t.Error(err)
		}
	})
}

func TestADirectoryThatIsNoChainsIsLeftAlone(t *testing.T) {
	n := newNode(t)
	precious := filepath.Join(n.dir("precious"), "file")
	write(t, precious, "mine")
	if removed, err := n.CollectBroken(context.Background()); err != nil || len(removed) > 0 {
		t.Errorf("gc removed %v, %v", removed, err)
	}
	if list, err := n.List(); err != nil || len(list) != 1 || list[0].Condition != Foreign || !strings.Contains(list[0].Detail, "left alone") {
		t.Errorf("it is listed as %+v, %v", list, err)
	}
	testenv.Must(t, os.MkdirAll(n.dir("empty"), 0o755))
	if removed, err := n.CollectBroken(context.Background()); err != nil || len(removed) > 0 {
		t.Errorf("gc removed %v, %v", removed, err)
	}
	testenv.Must(t, os.Remove(n.dir("empty")))
	if _, err := n.Down(context.Background(), "precious"); err == nil {
		t.Error("down accepted it as a chain")
	}
	entries, err := os.ReadDir(n.dir("precious"))
	if err != nil || len(entries) != 1 {
		t.Errorf("it holds %v, %v", entries, err)
	}
}

// TestWhatIsSomebodyElsesIsNotRemoved although a journal names it; the journal is kept.
func TestWhatIsSomebodyElsesIsNotRemoved(t *testing.T) {
	n := newNode(t)
	outside := t.TempDir()
	for _, line := range []string{
		`{"make":[{"kind":"dir","path":"` + outside + `"}]}`,
		`{"make":[{"kind":"dir","path":"` + n.dir("evil") + `/../../../..` + outside + `"}]}`,
		`{"make":[{"kind":"mount","path":"/"}]}`,
		`{"make":[{"kind":"cgroup","path":"/draytek"}]}`,
	} {
		write(t, n.journalFile("evil"), line+"\n")
		removed, err := n.Collect(context.Background())
		if err != nil || len(removed) != 1 || len(removed[0].Left) != 1 || !strings.Contains(removed[0].Left[0], "does not belong to the chain") {
			t.Fatalf("%s: %+v, %v", line, removed, err)
		}
		kept, err := os.ReadFile(removed[0].SetAside[0])
		if err != nil || string(kept) != line+"\n" {
			t.Errorf("%s: %q, %v", line, kept, err)
		}
	}
	if _, err := os.Stat(outside); err != nil {
		t.Error(err)
	}
}

func TestAnUnreadableStateIsNotARestart(t *testing.T) {
	n := newNode(t)
	c, p := pair(t)
	ctx := context.Background()
	l := commit(t, n, c, p)
	state := filepath.Join(n.dir("pair"), fileState)
	good, err := os.ReadFile(state)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(state, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if found, err := n.inspect("pair"); err != nil || found.Condition != Broken {
		t.Errorf("%+v, %v", found, err)
	}
	if _, err := n.Create(ctx, "up", c, []byte(pairYAML), p); err == nil {
		t.Error("up took the running chain's place")
	}
	if !l.State.Sandboxes["a"].Netns.Exists() {
		t.Error("the running chain is gone")
	}
	if err := os.WriteFile(state, good, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := n.Down(ctx, "pair"); err != nil {
		t.Fatal(err)
	}
}

func TestAnInterruptedDownIsALeftover(t *testing.T) {
	n := newNode(t)
	c, p := pair(t)
	ctx := context.Background()
	l := commit(t, n, c, p)
	if err := n.revoke("pair"); err != nil { // the first thing that down does
		t.Fatal(err)
	}
	if err := (host.Netns{Path: l.State.Sandboxes["b"].Netns.Path}).SetDown("p0"); err != nil {
		t.Fatal(err)
	}
	removed, err := n.Collect(ctx)
	if err != nil || len(removed) != 1 {
		t.Errorf("gc removed %v, %v", removed, err)
	}
}

func TestCPUsAreGivenOnce(t *testing.T) {
	n := newNode(t)
	c, p := pair(t)
	p.Functions[0].CPUs = []int{0}
	ctx := context.Background()
	l, err := n.Create(ctx, "up", c, []byte(pairYAML), p)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := l.Remove(ctx); err != nil {
			t.Error(err)
		}
	}()
	other := *c
	other.Name = "other"
	if _, err := n.Create(ctx, "up", &other, []byte(pairYAML), p); err == nil || !strings.Contains(err.Error(), "CPU 0 was given to chain pair") {
		t.Errorf("a second chain got the same CPU: %v", err)
	}
}

func TestAStateDirectoryOfOthersIsRefused(t *testing.T) {
	n := newNode(t)
	if err := os.Chmod(n.StateDir, 0o777); err != nil {
		t.Fatal(err)
	}
	if _, err := n.Collect(context.Background()); err == nil || !strings.Contains(err.Error(), "chmod go-w") {
		t.Errorf("%v", err)
	}
}

func TestOneStateDirectoryHasOnePath(t *testing.T) {
	real := t.TempDir()
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(real, link); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{real, link, link + "/../link/"} {
		t.Setenv("DRAY_STATE", dir)
		if got, err := StateDir(); err != nil || got != real {
			t.Errorf("%s: %s, %v", dir, got, err)
		}
	}
	t.Setenv("DRAY_STATE", "relative")
	if got, err := StateDir(); err != nil || !filepath.IsAbs(got) {
		t.Errorf("relative: %s, %v", got, err)
	}
}
