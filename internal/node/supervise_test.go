// SPDX-License-Identifier: Apache-2.0

package node

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/drayage/dray/internal/host"
	"github.com/drayage/dray/internal/spec/chain"
	"github.com/drayage/dray/internal/spec/parse"
)

func TestOutcomeFollowsTheRestartPolicy(t *testing.T) {
	broken := errors.New("no such program")
	tests := []struct {
		policy chain.Restart
		code   int
		err    error
		want   Phase
	}{
		{chain.RestartNever, 0, nil, PhaseExited},
		{chain.RestartNever, 1, nil, PhaseFailed},
		{chain.RestartNever, 0, broken, PhaseFailed},
		{chain.RestartOnFailure, 0, nil, PhaseExited},
		{chain.RestartOnFailure, 137, nil, PhaseRestarting},
		{chain.RestartOnFailure, 0, broken, PhaseRestarting},
		{chain.RestartAlways, 0, nil, PhaseRestarting},
		{chain.RestartAlways, 1, nil, PhaseRestarting},
	}
	for _, tt := range tests {
		if got := outcome(tt.policy, tt.code, tt.err); got != tt.want {
			t.Errorf("%s, status %d, error %v: %s, want %s", tt.policy, tt.code, tt.err, got, tt.want)
		}
	}
}

func TestSettlingWaitsForEveryFunctionAndNamesFailures(t *testing.T) {
	now := time.Now()
	running := FunctionStatus{Name: "du", Phase: PhaseRunning, Since: now.Add(-time.Minute)}
	young := FunctionStatus{Name: "cu", Phase: PhaseRunning, Since: now}
	failed := FunctionStatus{Name: "ru", Phase: PhaseFailed, Exit: 3}
	starting := FunctionStatus{Name: "upf", Phase: PhaseStarting}

	if wait, err := settling(byName(running), time.Second); wait > 0 || err != nil {
		t.Errorf("a long-running function: wait %v, %v", wait, err)
	}
	if wait, _ := settling(byName(running, young), time.Second); wait <= 0 || wait > time.Second {
		t.Errorf("a function that has just started: wait %v", wait)
	}
	if wait, _ := settling(byName(starting), time.Second); wait <= 0 {
		t.Error("a function that is starting counts as settled")
	}
	gone := running
	gone.Process = host.ProcessID{PID: os.Getpid(), Boot: "another"}
	if wait, _ := settling(byName(gone), time.Second); wait <= 0 {
		t.Error("a function whose process has ended counts as settled before its status is known")
	}
	if _, err := settling(byName(running, failed), time.Second); err == nil || err.Error() != "function ru ended with status 3" {
		t.Errorf("a failed function: %v", err)
	}
}

func byName(list ...FunctionStatus) map[string]FunctionStatus {
	m := map[string]FunctionStatus{}
	for _, st := range list {
		m[st.Name] = st
	}
	return m
}

// TestLogsHaveNamesOfTheirOwn: a function may be named like Drayage's parts.
func TestLogsHaveNamesOfTheirOwn(t *testing.T) {
	l := &Live{dir: "/chain"}
	for _, own := range []string{l.BrokerLog(), l.SupervisorLog()} {
		if name := strings.TrimSuffix(filepath.Base(own), ".log"); parse.ValidName(name) {
			t.Errorf("%s is the log of a function called %q as well", own, name)
		}
	}
}
