// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"os"
	"strings"
	"testing"

	"github.com/drayage/dray/internal/host"
	"github.com/drayage/dray/test/testenv"
)

// leaveBehind makes what a dray that was killed leaves of a chain.
func leaveBehind(t *testing.T, n *Node, name string) {
	t.Helper()
	testenv.Must(t, os.MkdirAll(n.dir(name), 0o700))
	testenv.Must(t, touch(n.lockFile(name)))
	j, err := createJournal(n.journalFile(name), owner{Process: host.ProcessID{PID: 1 << 30}, Command: "up"})
	testenv.Must(t, err)
	testenv.Must(t, j.close())
}

// TestWhatAnotherHasRemovedIsNoFault: a command that clears a leftover may find that another
// command has already removed it.
func TestWhatAnotherHasRemovedIsNoFault(t *testing.T) {
	n := newNode(t)
	if removed, err := n.collectOne(context.Background(), "gone", []Condition{Leftover}); removed != nil || err != nil {
		t.Errorf("gc: %v, %v", removed, err)
	}
	if err := n.clearLeftover(context.Background(), "gone"); err != nil {
		t.Errorf("up: %v", err)
	}
	if err := n.clearLeftover(context.Background(), "../gone"); err == nil {
		t.Error("up clears what is no chain's name")
	}
	if _, err := n.Down(context.Background(), "gone"); err == nil || !strings.Contains(err.Error(), `no chain "gone" here`) {
		t.Errorf("down: %v", err)
	}
}

// TestAChainThatIsBegunIsInUse: a command that saw no lock file finds a journal after that.
func TestAChainThatIsBegunIsInUse(t *testing.T) {
	n := newNode(t)
	leaveBehind(t, n, "begun")
	if found, err := n.judgeWithoutLock("begun"); err != nil || found.Condition != Busy {
		t.Errorf("it is %s", found.Condition)
	}
	testenv.Must(t, os.Remove(n.lockFile("begun")))
	if found, err := n.judgeWithoutLock("begun"); err != nil || found.Condition != Leftover {
		t.Errorf("without a lock it is %s", found.Condition)
	}
	_, err := n.Down(context.Background(), "begun")
	testenv.Must(t, err)
}
