// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/drayage/dray/internal/host/step"
	"github.com/drayage/dray/test/testenv"
)

// TestAFileSystemThatGetsFullIsNamed: the check before a chain is made does not count its inodes.
func TestAFileSystemThatGetsFullIsNamed(t *testing.T) {
	n := newNode(t)
	n.StateDir = smallDisk(t, "nr_inodes=8")
	c, p := pair(t)
	_, err := n.Create(context.Background(), "up", c, []byte(pairYAML), p)
	if !errors.Is(err, unix.ENOSPC) || !strings.Contains(err.Error(), "tmpfs at "+n.StateDir+" has no inode left") {
		t.Errorf("%v", err)
	}
}

// TestLogsOfAChainThatDoesNotComeUpStay, those too of a link whose failed step removes
// them, until the next attempt.
func TestLogsOfAChainThatDoesNotComeUpStay(t *testing.T) {
	n := newNode(t)
	c, p := pair(t)
	logs := map[string]string{
		"log/a.log":                    strings.Repeat("x", mostOfLog) + "last words of a",
		"log/b.log":                    "",
		"fn/a/guest/console.log":       "kernel panic",
		"link/ab/switch/vpp.log":       "out of buffers",
		"link/ab/switch/log/vpp.log":   "in a file system of its own",
		"link/ab/host1/switch/ovs.log": "of a host",
		"fn/a/root/tmp/mine.log":       "a file of the function",
	}
	elsewhere := t.TempDir()
	outside := filepath.Join(elsewhere, "outside.log")
	testenv.Must(t, os.WriteFile(outside, []byte("secret"), 0o600))
	n.Fault = func(s step.Step, at step.Phase) error {
		if at != step.After || !strings.Contains(s.Name, "link ab: directory") {
			return nil
		}
		for name, text := range logs {
			path := filepath.Join(n.dir("pair"), name)
			testenv.Must(t, os.MkdirAll(filepath.Dir(path), 0o700))
			testenv.Must(t, os.WriteFile(path, []byte(text), 0o600))
		}
		testenv.Must(t, os.Symlink(outside, filepath.Join(n.dir("pair"), "link/ab/switch/link.log")))
		testenv.Must(t, os.Symlink(elsewhere, filepath.Join(n.dir("pair"), "fn/b/guest")))
		return errors.New("injected")
	}
	_, err := n.Create(context.Background(), "up", c, []byte(pairYAML), p)
	kept := n.failedDir("pair")
	if err == nil || !strings.Contains(err.Error(), "injected") || !strings.Contains(err.Error(), "the logs are kept in "+kept) {
		t.Errorf("%v", err)
	}
	delete(logs, "log/b.log")
	delete(logs, "fn/a/root/tmp/mine.log")
	for name, text := range logs {
		got, err := os.ReadFile(filepath.Join(kept, name))
		if err != nil || !strings.HasSuffix(text, string(got)) || len(got) == 0 || len(got) > mostOfLog {
			t.Errorf("of %s, %d bytes stay: %v", name, len(got), err)
		}
	}
	found := 0
	testenv.Must(t, filepath.WalkDir(kept, func(_ string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			found++
		}
		return err
	}))
	if log := n.FailedLog("pair", "a"); found != len(logs) || log != filepath.Join(kept, "log/a.log") || n.FailedLog("pair", "../a") != "" {
		t.Errorf("%d files stay, not %d; the log of a is %s", found, len(logs), log)
	}
	n.Fault = nil
	l, err := n.Create(context.Background(), "up", c, []byte(pairYAML), p)
	testenv.Must(t, err)
	if _, err := os.Stat(filepath.Dir(kept)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the next attempt leaves the logs: %v", err)
	}
	testenv.Must(t, l.Remove(context.Background()))
}

// TestKeptLogsAreBounded: few chains keep logs, the last ones to fail; dray gc forgets them.
func TestKeptLogsAreBounded(t *testing.T) {
	n := &Node{StateDir: t.TempDir()}
	for i := range 2 * mostOfFailed {
		l := savedChain(t, n, fmt.Sprintf("c%02d", i), "192.0.2.10/24")
		testenv.Must(t, os.Mkdir(filepath.Join(l.dir, "log"), 0o700))
		for f := range 40 {
			testenv.Must(t, os.WriteFile(filepath.Join(l.dir, "log", fmt.Sprintf("f%d.log", f)), make([]byte, mostOfLog), 0o600))
		}
		l.keepLogs()
		testenv.Must(t, os.RemoveAll(l.dir))
	}
	entries, err := os.ReadDir(filepath.Join(n.StateDir, dirFailed))
	testenv.Must(t, err)
	if len(entries) != mostOfFailed || entries[0].Name() != "c08" {
		t.Errorf("%d chains keep logs, the first is %v", len(entries), entries)
	}
	logs, err := filepath.Glob(filepath.Join(n.failedDir("c15"), "log", "*.log"))
	testenv.Must(t, err)
	total := int64(0)
	for _, log := range logs {
		info, err := os.Stat(log)
		testenv.Must(t, err)
		total += info.Size()
	}
	if len(logs) != 40 || total > mostOfChain {
		t.Errorf("%d logs of a chain have %d bytes", len(logs), total)
	}
	l := savedChain(t, n, "many", "192.0.2.11/24")
	testenv.Must(t, os.Mkdir(filepath.Join(l.dir, "log"), 0o700))
	for f := range mostLogs + 10 {
		testenv.Must(t, os.WriteFile(filepath.Join(l.dir, "log", fmt.Sprintf("f%d.log", f)), []byte("x"), 0o600))
	}
	l.keepLogs()
	testenv.Must(t, os.RemoveAll(l.dir))
	if entries, err = os.ReadDir(filepath.Join(n.failedDir("many"), "log")); err != nil || len(entries) != mostLogs {
		t.Errorf("%d logs of a chain stay: %v", len(entries), err)
	}
	_, err = n.CollectBroken(context.Background())
	testenv.Must(t, err)
	if _, err := os.Stat(filepath.Join(n.StateDir, dirFailed)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("dray gc leaves the logs: %v", err)
	}
}
