// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/drayage/dray/internal/host"
	"github.com/drayage/dray/test/testenv"
)

// onSmallDisk is a chain without commands whose state is in a small file system, and a file
// that leaves so many bytes there.
func onSmallDisk(t *testing.T) (l *Live, fill func(left int64)) {
	t.Helper()
	n := &Node{StateDir: smallDisk(t, "size=1m")}
	l = &Live{node: n, dir: n.dir("pair")}
	text := strings.ReplaceAll(pairYAML, `, command: [sleep, "1000"]`, "")
	l.Chain, l.State.Plan = planned(t, text)
	testenv.Must(t, os.Mkdir(l.dir, 0o700))
	testenv.Must(t, os.WriteFile(l.ChainFile(), []byte(text), 0o600))
	testenv.Must(t, l.save())
	return l, func(left int64) {
		t.Helper()
		var fs unix.Statfs_t
		path := filepath.Join(n.StateDir, "fill")
		testenv.Must(t, os.RemoveAll(path))
		testenv.Must(t, unix.Statfs(n.StateDir, &fs))
		testenv.Must(t, os.WriteFile(path, make([]byte, int64(fs.Bfree)*fs.Bsize-left), 0o600))
	}
}

// TestAReloadThatCannotBePublishedIsPublishedLater.
func TestAReloadThatCannotBePublishedIsPublishedLater(t *testing.T) {
	l, fill := onSmallDisk(t)
	s, err := l.Supervise()
	testenv.Must(t, err)
	ctx, cancel := context.WithTimeout(context.Background(), testenv.Patient(time.Minute))
	defer cancel()
	l.State.Revision = 7
	testenv.Must(t, l.save())
	fill(0)
	s.outputs = map[string]*output{}
	if err := s.readAgain(ctx, map[string]*supervised{}); !errors.Is(err, unix.ENOSPC) {
		t.Errorf("on a full disk: %v", err)
	}
	done := make(chan struct{})
	go func() { defer close(done); s.publishChanges(ctx) }()
	fill(512 << 10)
	for {
		if now, err := l.published(); err == nil && now.Revision == 7 && now.Reloads == 1 {
			break
		}
		testenv.Must(t, host.Sleep(ctx, time.Millisecond))
	}
	cancel()
	<-done
}

// TestAChangeDoesNotWaitForAFullDisk: a supervisor cannot record there what the change waits for.
func TestAChangeDoesNotWaitForAFullDisk(t *testing.T) {
	l, fill := onSmallDisk(t)
	_, err := l.Supervise() // it does nothing
	testenv.Must(t, err)
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, ReloadSignal)
	defer signal.Stop(signals)
	ctx, cancel := context.WithTimeout(context.Background(), testenv.Patient(time.Minute))
	defer cancel()
	fill(stateSpace / 2) // enough for the change's own state
	if err := l.adopt(ctx); !errors.Is(err, unix.ENOSPC) {
		t.Errorf("until it is adopted: %v", err)
	}
	status, err := l.published()
	testenv.Must(t, err)
	status.Revision, status.Functions["a"] = l.State.Revision+1, FunctionStatus{Name: "a", Phase: PhaseStarting}
	testenv.Must(t, writeJSON(filepath.Join(l.dir, fileStatus), status))
	l.State.Unsettled = []string{"a"}
	if err := l.reload(ctx, 0); !errors.Is(err, unix.ENOSPC) {
		t.Errorf("until it has settled: %v", err)
	}
}

// TestWhatHasSucceededIsNotRunAgain although the change that started it has failed elsewhere.
func TestWhatHasSucceededIsNotRunAgain(t *testing.T) {
	n := newNode(t)
	supervisedPair(t, n)
	ran := func(function string) string { return filepath.Join(t.TempDir(), function) }
	a, b := ran("a"), ran("b")
	text := pairYAML
	for _, command := range []string{"echo >>" + a, "echo >>" + b + "; exit 1"} {
		text = strings.Replace(text, `command: [sleep, "1000"]`, `restart: never, command: [sh, -c, "`+command+`"]`, 1)
	}
	for i := range 3 {
		if i == 2 { // as an older version left it
			l, err := n.OpenLocked(context.Background(), "pair")
			testenv.Must(t, err)
			l.State.Unsettled = []string{"a", "b"}
			testenv.Must(t, errors.Join(l.save(), l.Release()))
		}
		if what, err := applied(t, n, text); err == nil || !strings.Contains(err.Error(), "function b ended with status 1") || strings.Contains(err.Error(), "function a") {
			t.Errorf("%s: %v", what, err)
		}
	}
	for file, want := range map[string]int{a: 1, b: 3} {
		if lines, err := os.ReadFile(file); err != nil || len(lines) != want {
			t.Errorf("%s: %q, %v", file, lines, err)
		}
	}
	l, err := n.Open("pair")
	testenv.Must(t, err)
	if len(l.State.Unsettled) != 1 || l.State.Unsettled[0] != "b" {
		t.Errorf("unsettled: %v", l.State.Unsettled)
	}
}
