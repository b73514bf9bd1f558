// SPDX-License-Identifier: Apache-2.0

package node

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/drayage/dray/internal/host"
	"github.com/drayage/dray/internal/spec/chain"
	"github.com/drayage/dray/test/testenv"
)

// TestAnEndThatIsNotRecorded: status waits for the supervisor to say how a command has ended, and
// not for ever.
func TestAnEndThatIsNotRecorded(t *testing.T) {
	alive, dead := identify(t)
	n := &Node{StateDir: t.TempDir()}
	l := &Live{Chain: &chain.Chain{Name: "c"}, dir: n.dir("c"), node: n}
	testenv.Must(t, os.Mkdir(l.dir, 0o700))
	publish := func(supervisor host.ProcessID, st FunctionStatus) {
		t.Helper()
		st.Name = "a"
		testenv.Must(t, writeJSON(filepath.Join(l.dir, fileStatus), Status{Supervisor: supervisor, Functions: byName(st)}))
	}
	running := FunctionStatus{Phase: PhaseRunning, Process: dead}
	publish(alive, running)
	functions, supervised, err := l.Status()
	if err != nil || !supervised || functions[0].Phase != PhaseGone || !strings.Contains(functions[0].Error, "does not record that") {
		t.Errorf("it is never recorded: %+v, %v, %v", functions, supervised, err)
	}
	if _, err := settling(byName(functions...), 0); err == nil || !strings.Contains(err.Error(), "function a: it ended") {
		t.Errorf("a function that is gone has settled: %v", err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		publish(alive, FunctionStatus{Phase: PhaseFailed, Exit: 7})
	}()
	if functions, _, err = l.Status(); err != nil || functions[0].Exit != 7 {
		t.Errorf("it is recorded: %+v, %v", functions, err)
	}
	<-done
	publish(dead, running)
	if functions, supervised, err = l.Status(); err != nil || supervised || functions[0].Phase != PhaseGone || !strings.Contains(functions[0].Error, "no supervisor ran") {
		t.Errorf("nobody is there to record it: %+v, %v, %v", functions, supervised, err)
	}
}
