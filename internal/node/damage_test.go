// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/drayage/dray/internal/host"
	"github.com/drayage/dray/test/testenv"
)

// damages are what can become of a file.
var damages = testenv.Damages(`{"version":99,"plan":{"chain":7},"make":"otherwise","functions":[],"process":"x","ab":[]}`)

// TestADamagedChainCanBeRemoved by down and by gc, and that blocks no other chain. What is damaged
// and is needed is kept.
func TestADamagedChainCanBeRemoved(t *testing.T) {
	removeDamaged(t, func(file, damage, command string) bool {
		return damage == "garbage" || file == fileState && command == "gc"
	})
}

// TestEachDamageOfEachFile is TestADamagedChainCanBeRemoved with all of them.
func TestEachDamageOfEachFile(t *testing.T) {
	removeDamaged(t, func(string, string, string) bool { return true })
}

func removeDamaged(t *testing.T, chosen func(file, damage, command string) bool) {
	n := newNode(t)
	c, p := pair(t)
	ctx := context.Background()
	other := commit(t, n, c, p)
	for _, file := range []string{fileLock, fileStatus, fileProcesses, fileBroker, fileJournal, fileChain, fileState} {
		for name, damage := range damages {
			for _, command := range []string{"down", "gc"} {
				if !chosen(file, name, command) {
					continue
				}
				second, plan := *c, *p
				second.Name, plan.Chain = "second", "second"
				l, err := n.Create(ctx, "up", &second, []byte(strings.Replace(pairYAML, "name: pair", "name: second", 1)), &plan)
				testenv.Must(t, err)
				testenv.Must(t, l.Commit())
				damage(t, filepath.Join(l.dir, file))
				broken := conditionOf(file, name) == Broken
				checkDamaged(t, n, file, name)
				var kept Removal
				if command == "gc" {
					kept = collectDamaged(t, n, file, name)
				}
				if command == "down" || conditionOf(file, name) == Up {
					if kept, err = n.Down(ctx, "second"); err != nil {
						t.Fatalf("%s is %s: down: %v", file, name, err)
					}
				}
				if broken != (len(kept.SetAside) == 1) || broken && !strings.HasSuffix(kept.SetAside[0], "-second-"+file) {
					t.Errorf("%s is %s: %s kept %+v", file, name, command, kept)
				}
				if l.State.Sandboxes["a"].Netns.Exists() {
					t.Fatalf("%s is %s: %s left the chain", file, name, command)
				}
			}
		}
	}
	if !other.State.Sandboxes["a"].Netns.Exists() {
		t.Error("the other chain is gone")
	}
	_, err := n.Down(ctx, "pair")
	testenv.Must(t, err)
}

// conditionOf is the condition of a chain of which a file is damaged in this way.
func conditionOf(file, damage string) Condition {
	switch {
	case file == fileJournal && damage == "cut off": // as if its dray had been killed at that point
		return Leftover
	case refused(file, damage) || !slices.Contains([]string{fileJournal, fileChain, fileState}, file):
		return Up
	}
	return Broken
}

// refused: YAML that another version of dray may accept is not damaged.
func refused(file, damage string) bool {
	return file == fileChain && (damage == "newer" || damage == "cut off")
}

func checkDamaged(t *testing.T, n *Node, file, damage string) {
	t.Helper()
	list, err := n.List()
	testenv.Must(t, err)
	want := conditionOf(file, damage)
	broken := want == Broken
	if len(list) != 2 || list[0].Condition != Up || list[1].Condition != want || broken && !strings.Contains(list[1].Detail, file) {
		t.Errorf("%s is %s: the chains are %+v", file, damage, list)
	}
	if claimed, err := n.claims(""); err != nil || len(claimed.cpus) > 0 {
		t.Errorf("%s is %s: %v, %v", file, damage, claimed, err)
	}
	if l, err := n.Open("second"); err == nil {
		_, _, _ = l.Status()
		if _, err := l.Revivals(); err != nil {
			t.Errorf("%s is %s: %v", file, damage, err)
		}
	} else if want == Up && (!refused(file, damage) || !strings.Contains(err.Error(), "dray down second")) {
		t.Errorf("%s is %s: %v", file, damage, err)
	}
}

func collectDamaged(t *testing.T, n *Node, file, damage string) (kept Removal) {
	t.Helper()
	removed, err := n.CollectBroken(context.Background())
	collected := conditionOf(file, damage) != Up
	if err != nil || collected != (len(removed) == 1) {
		t.Fatalf("%s is %s: gc removed %+v, %v", file, damage, removed, err)
	}
	if collected {
		kept = removed[0].Removal
	}
	return kept
}

// TestAFileThatCannotBeReadNowIsNotDamaged: too many open files, say. The chain stays, whatever
// command comes.
func TestAFileThatCannotBeReadNowIsNotDamaged(t *testing.T) {
	n := newNode(t)
	ctx := context.Background()
	c, p := pair(t)
	l := commit(t, n, c, p)
	testenv.Must(t, l.Release())
	testenv.Must(t, writeJSON(filepath.Join(l.dir, fileProcesses), map[string]Revival{"ab": {Restarts: 1}}))
	for _, file := range []string{fileJournal, fileChain, fileState} {
		end := testenv.Unreadable(t, filepath.Join(l.dir, file))
		if removed, err := n.CollectBroken(ctx); !errors.Is(err, unix.EAGAIN) || len(removed) > 0 {
			t.Errorf("%s: gc removed %+v, %v", file, removed, err)
		}
		if _, err := n.Down(ctx, "pair"); !errors.Is(err, unix.EAGAIN) {
			t.Errorf("%s: down: %v", file, err)
		}
		if _, err := n.claims(""); file == fileState && !errors.Is(err, unix.EAGAIN) {
			t.Errorf("what it has claimed: %v", err)
		}
		end()
		if found, err := n.inspect("pair"); err != nil || found.Condition != Up {
			t.Errorf("%s: then it is %+v, %v", file, found, err)
		}
	}
	end := testenv.Unreadable(t, filepath.Join(l.dir, fileProcesses))
	if all, err := l.Revivals(); !errors.Is(err, unix.EAGAIN) {
		t.Errorf("restarted links: %v, %v", all, err)
	}
	end()
	_, err := n.Down(ctx, "pair")
	testenv.Must(t, err)
}

// TestWhatIsInTheStateDirectorysOwnPlaces is moved away.
func TestWhatIsInTheStateDirectorysOwnPlaces(t *testing.T) {
	n := newNode(t)
	for _, file := range []string{fileLocked, fileMeasuring} {
		for name, damage := range damages {
			damage(t, filepath.Join(n.StateDir, file))
			if _, err := n.Collect(context.Background()); err != nil {
				t.Errorf("%s is %s: gc: %v", file, name, err)
			}
			end, err := n.Measure(context.Background(), "run", func(Measurer) error { return context.Canceled })
			if err != nil {
				t.Errorf("%s is %s: measure: %v", file, name, err)
				continue
			}
			end()
		}
	}
	testenv.Must(t, os.RemoveAll(filepath.Join(n.StateDir, fileMeasuring)))
}

// TestASupervisorWritesADamagedStatusAgain.
func TestASupervisorWritesADamagedStatusAgain(t *testing.T) {
	n := newNode(t)
	c, p := pair(t)
	l := commit(t, n, c, p)
	s, err := l.Supervise()
	testenv.Must(t, err)
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	for name, damage := range damages {
		damage(t, filepath.Join(l.dir, fileStatus))
		for {
			_, supervised, err := l.Status()
			if err == nil && supervised {
				break
			}
			if host.Sleep(ctx, lockPoll) != nil {
				t.Fatalf("%s: %v", name, err)
			}
		}
	}
	cancel()
	testenv.Must(t, <-done)
	testenv.Must(t, os.RemoveAll(filepath.Join(l.dir, fileStatus))) // down would end this process, its supervisor
	_, err = n.Down(context.Background(), "pair")
	testenv.Must(t, err)
}
