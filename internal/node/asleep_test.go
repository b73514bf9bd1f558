// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/drayage/dray/internal/host"
	"github.com/drayage/dray/internal/link/transport"
	"github.com/drayage/dray/test/testenv"
)

// patience bounds the wait on a busy machine for steps that take seconds at most.
var patience = testenv.Patient(time.Minute)

// TestOnlyASleepingSwitchIsEnded: a busy one, a stopped one, one that sleeps again and
// again, and one whose threads have other names run on.
func TestOnlyASleepingSwitchIsEnded(t *testing.T) {
	testenv.Program(t, "perl")
	const longest = time.Second
	log := filepath.Join(t.TempDir(), "log")
	for _, c := range []struct {
		name, script, polls string
		signal              syscall.Signal
		ends                bool
	}{
		{name: "asleep", script: "exec sleep 1000", polls: "sleep", ends: true},
		{name: "busy", script: "while :; do :; done", polls: "sh"},
		// It waits for no other process: one that the machine holds up would be a long sleep.
		{name: "naps", script: "exec perl -e 'select undef, undef, undef, 0.01 while 1'", polls: "perl"},
		{name: "stopped", script: "exec sleep 1000", polls: "sleep", signal: syscall.SIGSTOP},
		{name: "no thread of that name", script: "exec sleep 1000", polls: "pmd-"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			p := shell(t, c.script)
			p.Log, p.Polls = log, []string{c.polls}
			if c.signal != 0 && !p.ID.Signal(c.signal) {
				t.Fatal("it does not run")
			}
			wait := 4 * longest
			if c.ends {
				wait = patience
			}
			ctx, cancel := context.WithTimeout(context.Background(), wait)
			defer cancel()
			if endIfAsleep(ctx, p, longest); (ctx.Err() == nil) != c.ends {
				t.Errorf("killed: %v", ctx.Err() == nil)
			}
		})
	}
}

// shell starts a script.
func shell(t *testing.T, script string) transport.Process {
	t.Helper()
	cmd := exec.Command("sh", "-c", script)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	testenv.Must(t, cmd.Start())
	t.Cleanup(func() {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		_ = cmd.Wait()
	})
	id, err := host.Identify(cmd.Process.Pid)
	testenv.Must(t, err)
	return transport.Process{Name: "switch", ID: id}
}

// TestAHangingSwitchIsRestarted: its log says why.
func TestAHangingSwitchIsRestarted(t *testing.T) {
	t.Parallel()
	_, l, first := keptLink(t)
	p := &l.State.Reports["ab"].Processes[0]
	p.Polls = []string{"sleep"}
	testenv.Must(t, os.WriteFile(p.Log, nil, 0o600))
	testenv.Must(t, writeJSON(filepath.Join(l.dir, fileState), l.State))
	l.links.begin(l.reviveLinks)
	defer l.links.end()
	again := awaitRevival(t, l, func(r Revival) bool { return r.Restarts == 1 })
	if first.Alive() || !again.Processes[0].ID.Alive() {
		t.Errorf("it came to %+v", again)
	}
	text, err := os.ReadFile(p.Log)
	if err != nil || !strings.Contains(string(text), "switch hangs") {
		t.Errorf("its log says %q, %v", text, err)
	}
}
