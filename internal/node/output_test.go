// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/drayage/dray/internal/function/process"
	"github.com/drayage/dray/internal/function/runtime"
	"github.com/drayage/dray/internal/link/bridge"
	"github.com/drayage/dray/internal/link/transport"
)

// supervisorMain is this program as a supervisor, or as its log keeper.
func supervisorMain(args []string) error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	n := &Node{
		StateDir: os.Getenv("DRAY_STATE"), Runtimes: []runtime.Runtime{process.New()}, Transports: []transport.Driver{bridge.New()},
	}
	if args[0] == LogKeeperCommand {
		return n.KeepOutput(ctx, args[1], args[2:])
	}
	l, err := n.Open(args[1])
	if err != nil {
		return err
	}
	s, err := l.Supervise()
	if err != nil {
		return err
	}
	s.Outlive(os.Args[0])
	s.Run(ctx)
	return nil
}

// talking is the pair; one function prints numbers.
const talking = `
i=0; while :; do echo said $i; echo complained $i >&2; i=$((i+1)); sleep 0.02; done`

// TestOutputOutlivesTheSupervisor kills it: its functions go on, and their output
// is in their logs, except lines that it had read but not written.
func TestOutputOutlivesTheSupervisor(t *testing.T) {
	n := newNode(t)
	c, p := pair(t)
	ctx := context.Background()
	source := strings.Replace(pairYAML, `command: [sleep, "1000"]`, fmt.Sprintf("command: [sh, -c, %q]", talking), 1)
	l, err := n.Create(ctx, "up", c, []byte(source), p)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if _, err := n.Down(ctx, c.Name); err != nil {
			t.Error(err)
		}
	}()
	if err := l.Commit(); err != nil {
		t.Fatal(err)
	}
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if err := l.StartSupervisor(ctx, program, 100*time.Millisecond); err != nil {
		t.Fatal(err)
	}
	leaf := n.Cgroup(c.Name).Child(supervisorGroup)
	await(t, "a log keeper", func() bool { pids, err := leaf.Processes(); return err == nil && len(pids) == 2 })

	var s Status
	if err := readJSON(filepath.Join(n.dir(c.Name), fileStatus), &s); err != nil {
		t.Fatal(err)
	}
	s.Supervisor.Signal(syscall.SIGKILL)
	await(t, "the supervisor's end", func() bool { return !s.Supervisor.Alive() })
	said := lastSaid(t, l)
	await(t, "more in the log", func() bool { return lastSaid(t, l) > said+20 })
	functions, supervised, err := l.Status()
	if err != nil || supervised || functions[0].Phase != PhaseRunning {
		t.Errorf("supervised: %v, %v; %+v", supervised, err, functions)
	}
	if err := inOrder(strings.Split(strings.TrimSpace(l.LogTail("a", 1<<20)), "\n")); err != nil {
		t.Error(err)
	}
}

// mayBeLost is far more lines than one read ever returns.
const mayBeLost = 200

// inOrder reports lines that are repeated, out of order or missing; one gap is
// allowed.
func inOrder(lines []string) error {
	next, lost := 0, 0
	for i, line := range lines {
		var what string
		var at int
		if _, err := fmt.Sscanf(line, "%s %d", &what, &at); err != nil {
			return fmt.Errorf("line %d is %q: %w", i, line, err)
		}
		at *= 2
		if what == "complained" {
			at++
		}
		if at != next {
			if at < next || at > next+mayBeLost || lost > 0 {
				return fmt.Errorf("line %d is %q, and should be number %d; %d lines are missing before", i, line, next, lost)
			}
			lost = at - next
		}
		next = at + 1
	}
	return nil
}

func TestInOrder(t *testing.T) {
	for _, c := range []struct {
		lines string
		ok    bool
	}{
		{"said 0,complained 0,said 1", true},
		{"said 0,complained 1,said 2", true},
		{"said 0,said 1,said 2", false},
		{"said 0,complained 0,complained 0", false},
		{"said 0,said 1,complained 0", false},
		{"said 0,said 1000", false},
		{"said 0,compl", false},
	} {
		if err := inOrder(strings.Split(c.lines, ",")); (err == nil) != c.ok {
			t.Errorf("%s: %v", c.lines, err)
		}
	}
}

// lastSaid is the last number in the log of function a; -1 for none.
func lastSaid(t *testing.T, l *Live) int {
	t.Helper()
	var what string
	number := -1
	_, _ = fmt.Sscan(l.LogTail("a", 1), &what, &number)
	return number
}

func await(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !holds(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("within %v not: %s", patience, what)
		}
	}
}

// TestOutputIsDrained: everything written before drain is in the log after it, and
// an escaped writer does not block close.
func TestOutputIsDrained(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.log")
	o, err := newOutput(path)
	if err != nil {
		t.Fatal(err)
	}
	escaped, err := syscall.Dup(int(o.write.Fd()))
	if err != nil {
		t.Fatal(err)
	}
	defer syscall.Close(escaped)
	want := ""
	for i := range 2000 {
		line := fmt.Sprintf("%d %s\n", i, strings.Repeat("x", i%100))
		want += line
		if _, err := o.write.WriteString(line); err != nil {
			t.Fatal(err)
		}
		if i%100 > 0 {
			continue
		}
		o.drain()
		if got, err := os.ReadFile(path); err != nil || string(got) != want {
			t.Fatalf("after line %d: %d bytes of %d are in the log, %v", i, len(got), len(want), err)
		}
	}
	o.close()
	if got, err := os.ReadFile(path); err != nil || string(got) != want {
		t.Errorf("%d bytes of %d are in the log, %v", len(got), len(want), err)
	}
}
