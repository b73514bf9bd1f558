// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/drayage/dray/internal/host"
	"github.com/drayage/dray/test/testenv"
)

// TestFigures looks at a pair while it runs, then after a port was deleted and a command
// killed.
func TestFigures(t *testing.T) {
	n := newNode(t)
	supervisedPair(t, n)
	figures := func() Figures {
		t.Helper()
		all, err := n.Figures()
		testenv.Must(t, err)
		if len(all) != 1 || all[0].Condition != Up || len(all[0].Functions) != 2 || len(all[0].Interfaces) != 2 {
			t.Fatalf("%+v", all)
		}
		return all[0]
	}
	now := figures()
	for i, st := range now.Functions {
		port := now.Interfaces[i]
		if st.Phase != PhaseRunning || st.Ended() || port.Function != st.Name || port.Link != "ab" || port.Port != "p0" || port.Traffic == nil || !port.Traffic.Carrier {
			t.Errorf("%+v, %+v", st, port)
		}
	}
	l, err := n.Open("pair")
	testenv.Must(t, err)
	testenv.Must(t, l.State.Sandboxes["b"].Netns.RemoveLink("p0"))
	testenv.Must(t, syscall.Kill(now.Functions[0].Process.PID, syscall.SIGKILL))
	ctx, cancel := context.WithTimeout(context.Background(), testenv.Patient(time.Minute))
	defer cancel()
	for now = figures(); now.Functions[0].Phase != PhaseFailed; now = figures() {
		testenv.Must(t, host.Sleep(ctx, time.Millisecond))
	}
	if st := now.Functions[0]; !st.Ended() || st.Exit != 128+9 {
		t.Errorf("%+v", st)
	}
	if now.Functions[1].Phase != PhaseRunning || now.Interfaces[1].Traffic != nil {
		t.Errorf("%+v, %+v", now.Functions[1], now.Interfaces[1])
	}
}

// TestFiguresOfDamage: one chain's damage hides no other chain.
func TestFiguresOfDamage(t *testing.T) {
	n := newNode(t)
	supervisedPair(t, n)
	status := filepath.Join(n.dir("pair"), fileStatus)
	whole, err := os.ReadFile(status)
	testenv.Must(t, err)
	testenv.Must(t, os.WriteFile(status, []byte("{"), 0o600))
	all, err := n.Figures()
	if err != nil || len(all) != 1 || all[0].Condition != Broken || all[0].Functions != nil {
		t.Errorf("%+v, %v", all, err)
	}
	testenv.Must(t, os.WriteFile(status, whole, 0o600))
}
