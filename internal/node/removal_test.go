// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/drayage/dray/internal/function/runtime"
	"github.com/drayage/dray/internal/host"
	"github.com/drayage/dray/internal/host/step"
	"github.com/drayage/dray/internal/spec/chain"
	"github.com/drayage/dray/test/testenv"
)

// engine is a runtime whose engine has something of each chain.
type engine struct {
	runtime.Runtime
	fault   error
	removed []string
}

func (e *engine) Find(_ context.Context, chain host.Cgroup) ([]step.Resource, error) {
	return []step.Resource{{Kind: "engine", Path: chain.Path + "/a"}}, e.fault
}

func (e *engine) Removers() step.Removers {
	return step.Removers{"engine": func(_ context.Context, r step.Resource) error {
		e.removed = append(e.removed, r.Path)
		return nil
	}}
}

// TestAChainWithoutItsJournalIsRemovedByItsState, if only its links are outside its directory
// and its control groups, and by what engines know.
func TestAChainWithoutItsJournalIsRemovedByItsState(t *testing.T) {
	n := newNode(t)
	e := &engine{Runtime: n.Runtimes[0]}
	n.Runtimes = []runtime.Runtime{e}
	c, p := pair(t)
	ctx := context.Background()
	l := commit(t, n, c, p)
	read, err := n.readJournal("pair")
	testenv.Must(t, err)
	for _, part := range []string{fileJournal, fileChain, fileState} {
		damages["garbage"](t, filepath.Join(l.dir, part))
		made, unknown := n.withoutJournal(ctx, "pair")
		if !slices.ContainsFunc(made, func(r step.Resource) bool { return r.Kind == "engine" }) || (len(unknown) > 0) != (part == fileState) {
			t.Errorf("%s is damaged as well: made %v, unknown %q", part, made, unknown)
		}
		for _, r := range read.Resources {
			inside := slices.Contains([]step.Kind{host.KindDir, host.KindNetns, host.KindCgroup, host.KindMount}, r.Kind)
			if !inside && part != fileState && !slices.Contains(made, r) {
				t.Errorf("%s is damaged as well: %s is not known", part, r)
			}
		}
	}
	e.fault = errors.New("no answer")
	kept, err := n.Down(ctx, "pair")
	if err != nil || len(e.removed) != 1 || len(kept.SetAside) != 3 || len(kept.Left) != 2 || !strings.Contains(kept.Left[0], "no answer") {
		t.Errorf("down keeps %+v, %v; the engine removed %v", kept, err, e.removed)
	}
}

// TestARemovalThatStopsCanGoOn: what is left is still known as the chain's.
func TestARemovalThatStopsCanGoOn(t *testing.T) {
	n := newNode(t)
	c, p := pair(t)
	ctx := context.Background()
	for what, damage := range map[string]func(string){
		"damaged": func(path string) { damages["garbage"](t, path) },
		"missing": func(path string) { testenv.Must(t, os.Remove(path)) },
	} {
		commit(t, n, c, p)
		damage(n.journalFile("pair"))
		testenv.Must(t, n.emptyChainDir(ctx, "pair"))
		if found, err := n.inspect("pair"); err != nil || found.Condition != Broken {
			t.Errorf("the journal is %s: %+v, %v", what, found, err)
		}
		_, err := n.Down(ctx, "pair")
		testenv.Must(t, err)
	}
}

// evil is the journal of a chain that names something else.
const evil = `{"make":[{"kind":"dir","path":"/somewhere/else"}]}` + "\n"

// TestWhatIsInThePlaceOfDamagedFiles holds no removal up.
func TestWhatIsInThePlaceOfDamagedFiles(t *testing.T) {
	n := newNode(t)
	told := 0
	n.Kept = func(string, Removal) { told++ }
	for name, damage := range damages {
		for _, dir := range []string{dirDamaged, dirFailed} {
			damage(t, filepath.Join(n.StateDir, dir))
		}
		write(t, n.journalFile("evil"), evil)
		removed, err := n.CollectBroken(context.Background())
		if err != nil || len(removed) != 1 || len(removed[0].SetAside) != 1 || len(removed[0].Left) != 1 {
			t.Errorf("%s: %+v, %v", name, removed, err)
		}
		damage(t, filepath.Join(n.StateDir, dirFailed))
		testenv.Must(t, n.forget("evil"))
		damage(t, filepath.Join(n.StateDir, dirFailed))
		l := &Live{Chain: &chain.Chain{Name: "evil"}, node: n, dir: n.dir("evil")}
		write(t, filepath.Join(l.dir, "log", "a.log"), "last words")
		l.keepLogs()
		if log := n.FailedLog("evil", "a"); !l.kept || log == "" {
			t.Errorf("%s: the logs are not kept", name)
		}
		write(t, n.journalFile("evil"), evil)
		testenv.Must(t, n.clearLeftover(context.Background(), "evil"))
	}
	if told != len(damages) {
		t.Errorf("told %d times of what was kept, not %d", told, len(damages))
	}
}

// TestARemovalNeedsNoInode.
func TestARemovalNeedsNoInode(t *testing.T) {
	n := &Node{StateDir: smallDisk(t, "size=1m,nr_inodes=16")}
	testenv.Must(t, os.Mkdir(n.dir("evil"), 0o711))
	testenv.Must(t, os.WriteFile(n.journalFile("evil"), []byte(evil), 0o600))
	for i := 0; ; i++ {
		if err := os.WriteFile(filepath.Join(n.StateDir, fmt.Sprintf(".fill%d", i)), nil, 0o600); errors.Is(err, unix.ENOSPC) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
	kept, err := n.Down(context.Background(), "evil")
	if err != nil || len(kept.Lost) != 1 || !strings.Contains(kept.Lost[0], fileJournal) || found(n, "evil") {
		t.Errorf("%+v, %v", kept, err)
	}
}

// TestDamagedFilesAreBounded in number and in size; the last one stays.
func TestDamagedFilesAreBounded(t *testing.T) {
	n := &Node{StateDir: t.TempDir()}
	path, last := filepath.Join(n.StateDir, "file"), ""
	for i := range mostDamaged + 8 {
		testenv.Must(t, os.WriteFile(path, []byte("x"), 0o600))
		if i > mostDamaged {
			testenv.Must(t, os.Truncate(path, 2*mostDamagedBytes))
		}
		to, err := n.moveAside(path, fmt.Sprint("file", i))
		testenv.Must(t, err)
		last = to
	}
	entries, err := os.ReadDir(filepath.Dir(last))
	testenv.Must(t, err)
	info, err := os.Stat(last)
	if err != nil || len(entries) != mostDamaged || info.Size() != mostDamagedBytes {
		t.Errorf("%d files stay, the last: %+v, %v", len(entries), info, err)
	}
	testenv.Must(t, os.WriteFile(path, make([]byte, mostDamagedBytes), 0o600))
	to, err := n.moveAside(path, "full")
	testenv.Must(t, err)
	if entries, err = os.ReadDir(filepath.Dir(last)); err != nil || len(entries) != 1 || entries[0].Name() != filepath.Base(to) {
		t.Errorf("%v, %v", entries, err)
	}
}
