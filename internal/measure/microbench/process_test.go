// SPDX-License-Identifier: Apache-2.0

package microbench

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// A process's children are found whichever of its threads started them, and the
// last of several is followed.
func TestInnermost(t *testing.T) {
	self := os.Getpid()
	if got := innermost(self); got != self {
		t.Fatalf("without children: %d, want %d", got, self)
	}
	var started []*exec.Cmd
	ready, done := make(chan error), make(chan bool)
	go func() {
		// The thread lives until they have been found: otherwise another one would
		// inherit them.
		runtime.LockOSThread()
		for range 2 {
			cmd := exec.Command("sleep", "60")
			if err := cmd.Start(); err != nil {
				ready <- err
				return
			}
			started = append(started, cmd)
		}
		ready <- nil
		<-done
	}()
	defer close(done)
	if err := <-ready; err != nil {
		t.Fatal(err)
	}
	for i := len(started) - 1; i >= 0; i-- {
		if got, want := innermost(self), started[i].Process.Pid; got != want {
			t.Errorf("with %d children: %d, want %d", i+1, got, want)
		}
		_ = started[i].Process.Kill()
		_ = started[i].Wait() // it was killed
	}
	if got := innermost(self); got != self {
		t.Errorf("after their end: %d, want %d", got, self)
	}
}

// script starts a shell script as a process of the bench.
func script(t *testing.T, text string) *process {
	t.Helper()
	p, err := startProcess([]string{"sh", "-c", text}, anyCPU, filepath.Join(t.TempDir(), "log"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.kill)
	return p
}

// TestAStoppedProcessIsKilled with what it has started: a stopped one would never end by itself.
func TestAStoppedProcessIsKilled(t *testing.T) {
	p := script(t, "sleep 1000 & echo $!; wait")
	if !p.says(context.Background(), 0, "\n", answerWithin) {
		t.Fatal("the process prints nothing")
	}
	child, err := strconv.Atoi(strings.TrimSpace(p.logFrom(0)))
	if err != nil {
		t.Fatal(err)
	}
	p.signal(unix.SIGSTOP)
	p.kill()
	for end := time.Now().Add(answerWithin); unix.Kill(child, 0) == nil; time.Sleep(10 * time.Millisecond) {
		if state, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", child)); err == nil && strings.Contains(string(state), ") Z ") {
			return // nobody has waited for it yet
		}
		if time.Now().After(end) {
			t.Fatal("its child is still there")
		}
	}
}

func TestProcessTalks(t *testing.T) {
	ctx := context.Background()
	p := script(t, `echo ready; while read line; do echo "noise"; printf 'Rx-pps:   %s\n' "$line"; done`)
	if !p.says(ctx, 0, "ready", answerWithin) {
		t.Fatal("the process prints nothing")
	}
	for _, want := range []float64{12, 3.5e6} {
		if got, ok := p.ask(ctx, fmt.Sprintf("%g and more\n", want), "Rx-pps:"); !ok || got != want {
			t.Errorf("asked for %g: %g, %v", want, got, ok)
		}
	}
	p.kill()
	if p.alive() {
		t.Error("alive after it was killed")
	}
	if _, ok := p.ask(ctx, "1\n", "Rx-pps:"); ok {
		t.Error("a dead process answers")
	}
}

const probeScript = `#!/bin/sh
echo "EAL: talks"
while read round case rest; do
	[ "$case" != end ] || { echo "no more" >&2; exit 3; }
	echo "{\"case\": \"$case\", \"round\": $round, \"unit\": \"ns\", \"values\": [1,2,$rest]}"
done
`

func TestProbe(t *testing.T) {
	path := filepath.Join(t.TempDir(), "probe")
	if err := os.WriteFile(path, []byte(probeScript), 0o755); err != nil {
		t.Fatal(err)
	}
	p, err := startProbe(context.Background(), path)
	if err != nil {
		t.Fatal(err)
	}
	s, err := p.ask(3, "trips %d", 9)
	if err != nil || s.Case != "trips" || s.Round != 3 || !slices.Equal(s.Values, []float64{1, 2, 9}) {
		t.Errorf("%+v, %v", s, err)
	}
	if _, err := p.ask(5, "end"); err == nil || !strings.Contains(err.Error(), "no more") {
		t.Errorf("ended: %v", err)
	}
	if err := p.end(); err == nil {
		t.Error("its exit status is not reported")
	}
}

// A probe ends when the bench is interrupted.
func TestProbeInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	path := filepath.Join(t.TempDir(), "probe")
	if err := os.WriteFile(path, []byte("#!/bin/sh\nexec sleep 60\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	p, err := startProbe(ctx, path)
	if err != nil {
		t.Fatal(err)
	}
	time.AfterFunc(50*time.Millisecond, cancel)
	if _, err := p.ask(1, "trips 1"); err == nil {
		t.Error("an answer from an interrupted probe")
	}
	_ = p.end() // it was killed
}
