// SPDX-License-Identifier: Apache-2.0

package runtimetest

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/drayage/dray/internal/function/runtime"
	"github.com/drayage/dray/test/testenv"
)

// commandTests cover starting, ending and joining a function's command.
var commandTests = []namedTest{
	{"output and exit status", testOutput},
	{"much output", testMuchOutput},
	{"environment", testEnvironment},
	{"drayage's programs are in the PATH", testOwnPrograms},
	{"restart keeps the namespace", testRestart},
	{"low ports and pings need no capability", testLowPort},
	{"exec beside the command", testExec},
	{"exec without a command", testExecAlone},
	{"exec ends with its context", testExecCancelled},
	{"exec in a terminal", testTerminal},
	{"no command is nothing to start", testNoCommand},
	{"bad commands", testBadCommands},
	{"a cancelled start leaves nothing running", testCancelledStart},
	{"stop lets the command end", testStopGently},
	{"stop kills stubborn processes", testStopStubborn},
	{"stop of a command that handles no signals", testStopPlain},
	{"children end with the command", testLeftChildren},
	{"removal kills a running command", testRemoveRunning},
}

func testOutput(t *testing.T, c Config) {
	f := Up(t, c.Runtime, c.function(t))
	script := "echo out; echo err >&2; exit 7"
	if !c.Machine { // Docker tells nobody the PID of a process that has ended
		script = "trap 'exit 7' USR1; echo out; echo err >&2; while :; do sleep 0.05; done"
	}
	r := f.Start("sh", "-c", script)
	if !c.Machine {
		Eventually(t, "its output", func() bool { return r.Err.String() != "" })
		r.ID().Signal(syscall.SIGUSR1)
	}
	if code := r.Status(); code != 7 {
		t.Errorf("exit status %d", code)
	}
	if r.Out.String() != "out\n" || r.Err.String() != "err\n" {
		t.Errorf("output %q, %q", r.Out, r.Err)
	}
	if pid := r.ID().PID; pid <= 0 || !gone(pid) {
		t.Errorf("process %d still exists, perhaps as a zombie", pid)
	}
}

func testMuchOutput(t *testing.T, c Config) {
	f := Up(t, c.Runtime, c.function(t))
	r := f.Start("perl", "-e", `print "x" x 1048576; print STDERR "y" x 65536`)
	if code := r.Status(); code != 0 || len(r.Out.String()) != 1<<20 || len(r.Err.String()) != 1<<16 {
		t.Errorf("status %d, %d and %d bytes", code, len(r.Out.String()), len(r.Err.String()))
	}
}

const callersVariable = "DRAY_TEST_OF_THE_CALLER"

func testEnvironment(t *testing.T, c Config) {
	fn := c.function(t)
	fn.Env = map[string]string{"GREETING": "hello world", "PATH": "/nowhere:/bin:/usr/bin"}
	f := Up(t, c.Runtime, fn)
	const script = `echo "$GREETING|$PATH|$` + callersVariable + `"`
	want := "hello world|/nowhere:/bin:/usr/bin|\n"
	if out, code := f.Output("sh", "-c", script); out != want || code != 0 {
		t.Errorf("status %d, %s", code, out)
	}
	f.Start("sleep", "1000")
	if out, code := f.Exec("", "sh", "-c", script); out != want || code != 0 {
		t.Errorf("exec: status %d, %s", code, out)
	}
}

// ownProgram is one more of Drayage's programs, under a name that none has: a program that is
// installed would be found first. provideProgram makes it, in a directory that containers do not
// see.
const ownProgram = "dray-conformance"

func provideProgram(t *testing.T) {
	t.Helper()
	dir := t.TempDir()
	testenv.Must(t, os.WriteFile(filepath.Join(dir, ownProgram), []byte("#!/bin/sh\necho found\n"), 0o755))
	testenv.Must(t, os.Chmod(filepath.Join(dir, ownProgram), 0o755)) // whatever the umask
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	before := runtime.OwnPrograms
	runtime.OwnPrograms = append(slices.Clone(before), ownProgram)
	t.Cleanup(func() { runtime.OwnPrograms = before })
}

func testOwnPrograms(t *testing.T, c Config) {
	fn := c.function(t)
	if fn.Image != "" || fn.Rootfs != "" {
		t.Skip("an image has its own programs")
	}
	f := Up(t, c.Runtime, fn)
	if out, code := f.Output(ownProgram); out != "found\n" || code != 0 {
		t.Errorf("status %d, %s", code, out)
	}
	f.Start("sleep", "1000")
	if out, code := f.Exec("", "sh", "-c", ownProgram); out != "found\n" || code != 0 {
		t.Errorf("exec: status %d, %s", code, out)
	}
}

func testRestart(t *testing.T, c Config) {
	f := Up(t, c.Runtime, c.function(t))
	plumb(t, f)
	first, _ := f.Output("readlink", "/proc/self/ns/net")
	second, code := f.Output("readlink", "/proc/self/ns/net")
	if code != 0 || first != second || !strings.HasPrefix(first, "net:[") {
		t.Errorf("status %d, namespace %s then %s", code, first, second)
	}
	third := f.Start("sh", "-c", "echo up; sleep 1000")
	third.Await("up")
	if err := third.Stop(cancelled()); err != nil {
		t.Error(err)
	}
	if out, _ := f.Output("cat", "/proc/net/dev"); !strings.Contains(out, "f1u:") {
		t.Errorf("the port is gone after a kill: %s", out)
	}
}

// testLowPort shows that a function can serve ports below 1024, and open one of
// the sockets that ping(8) uses.
func testLowPort(t *testing.T, c Config) {
	f := Up(t, c.Runtime, c.function(t))
	const script = `use Socket; socket(my $s, AF_INET, SOCK_STREAM, 0) or die; bind($s, sockaddr_in(80, INADDR_ANY)) or die "bind: $!";
		socket(my $p, AF_INET, SOCK_DGRAM, 1) or socket($p, AF_INET, SOCK_RAW, 1) or die "ping: $!"; print "ok\n"`
	if out, code := f.Output("perl", "-e", script); out != "ok\n" || code != 0 {
		t.Errorf("status %d, %s", code, out)
	}
}

// cancelled is a cancelled context: Stop kills at once.
func cancelled() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}

func testExec(t *testing.T, c Config) {
	f := Up(t, c.Runtime, c.function(t))
	plumb(t, f)
	main := f.Start("sh", "-c", "trap 'exit 0' TERM; echo up; while :; do sleep 0.1; done")
	main.Await("up")
	out, code := f.Exec("from stdin\n", "sh", "-c", "cat; cat /proc/net/dev; echo err >&2; exit 9")
	if code != 9 || !strings.Contains(out, "from stdin\n") || !strings.Contains(out, "f1u:") || !strings.Contains(out, "err\n") {
		t.Errorf("status %d, %s", code, out)
	}
	if out, code := f.Exec("", "sh", "-c", "kill -9 $$"); code != 137 {
		t.Errorf("killed by signal 9: status %d, %s", code, out)
	}
	if !main.ID().Alive() {
		t.Error("the command ended with the exec")
	}
	var bad *runtime.CommandError
	if _, err := f.Runtime.Exec(context.Background(), f.Spec, []string{"no-such-program"}, runtime.Stdio{}); !errors.As(err, &bad) {
		t.Errorf("exec of a program that does not exist: %v", err)
	}
}

func testExecAlone(t *testing.T, c Config) {
	f := Up(t, c.Runtime, c.function(t))
	plumb(t, f)
	out, code := f.Exec("in\n", "sh", "-c", "cat; cat /proc/net/dev; exit 3")
	if code != 3 || !strings.Contains(out, "in\n") || !strings.Contains(out, "f1u:") {
		t.Errorf("status %d, %s", code, out)
	}
	var bad *runtime.CommandError
	if _, err := f.Runtime.Exec(context.Background(), f.Spec, []string{"/etc"}, runtime.Stdio{}); !errors.As(err, &bad) {
		t.Errorf("exec of a directory: %v", err)
	}
}

func testExecCancelled(t *testing.T, c Config) {
	f := Up(t, c.Runtime, c.function(t))
	for _, command := range [][]string{nil, {"sh", "-c", "trap 'exit 0' TERM; echo up; while :; do sleep 0.1; done"}} {
		if command != nil {
			f.Start(command...).Await("up")
		}
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		begin := time.Now()
		code, err := f.Runtime.Exec(ctx, f.Spec, []string{"sleep", "1000"}, runtime.Stdio{})
		if code == 0 && err == nil {
			t.Error("an interrupted exec succeeded")
		}
		if took := time.Since(begin); took > Patience {
			t.Errorf("it took %v", took)
		}
	}
}

func testNoCommand(t *testing.T, c Config) {
	f := Up(t, c.Runtime, c.function(t))
	if _, err := f.TryStart(); !errors.Is(err, runtime.ErrNothingToStart) {
		t.Errorf("start without a command: %v", err)
	}
}

func testBadCommands(t *testing.T, c Config) {
	f := Up(t, c.Runtime, c.function(t))
	for _, program := range []string{"no-such-program", "/no/such/program", "/etc/passwd", "/etc"} {
		_, err := f.TryStart(program, "arg")
		var bad *runtime.CommandError
		if !errors.As(err, &bad) || bad.Command != program || bad.Function != f.Spec.Function.Name || bad.Reason == "" {
			t.Errorf("%s: error %v", program, err)
		}
	}
	if out, code := f.Output("echo", "works"); out != "works\n" || code != 0 {
		t.Errorf("after the bad ones: status %d, %s", code, out)
	}
}

func testCancelledStart(t *testing.T, c Config) {
	f := Up(t, c.Runtime, c.function(t))
	f.Spec.Function.Command = []string{"sleep", "1000"}
	i, err := f.Runtime.Start(cancelled(), f.Spec, runtime.Output{})
	if err == nil {
		// The command may have started before the cancellation took effect.
		if err := i.Stop(cancelled()); err != nil {
			t.Error(err)
		}
	}
	noProcesses(t, f)
}

func noProcesses(t *testing.T, f *Function) {
	t.Helper()
	pids, err := f.Spec.Cgroup.Processes()
	if err != nil || len(pids) > 0 {
		t.Errorf("processes %v still run (%v)", pids, err)
	}
}

func testStopGently(t *testing.T, c Config) {
	f := Up(t, c.Runtime, c.function(t))
	r := f.Start("sh", "-c", "trap 'echo bye; exit 5' TERM; echo up; while :; do sleep 0.05; done")
	r.Await("up")
	ctx, cancel := context.WithTimeout(context.Background(), Patience)
	defer cancel()
	testenv.Must(t, r.Stop(ctx))
	if code := r.Status(); code != 5 || !strings.HasSuffix(r.Out.String(), "bye\n") {
		t.Errorf("status %d, %s", code, r.Out)
	}
	if err := r.Stop(ctx); err != nil {
		t.Errorf("a second stop: %v", err)
	}
	noProcesses(t, f)
}

func testStopStubborn(t *testing.T, c Config) {
	f := Up(t, c.Runtime, c.function(t))
	// setsid: the child is in no process group that the parent's death reaches.
	r := f.Start("sh", "-c", "trap '' TERM; setsid sh -c 'echo up; while :; do sleep 1; done' & while :; do sleep 1; done")
	r.Await("up")
	pids, err := f.Spec.Cgroup.Processes()
	testenv.Must(t, err)
	begin := time.Now()
	ctx, cancel := context.WithTimeout(context.Background(), 300*time.Millisecond)
	defer cancel()
	testenv.Must(t, r.Stop(ctx))
	if took := time.Since(begin); took < 250*time.Millisecond {
		t.Errorf("it ended after %v, so it was not stubborn", took)
	}
	if code := r.Status(); code != 137 {
		t.Errorf("status %d", code)
	}
	noProcesses(t, f)
	for _, pid := range pids {
		Eventually(t, "the end of the child", func() bool { return gone(pid) })
	}
}

func testStopPlain(t *testing.T, c Config) {
	f := Up(t, c.Runtime, c.function(t))
	r := f.Start("sleep", "1000")
	ctx, cancel := context.WithTimeout(context.Background(), 2*Patience)
	defer cancel()
	begin := time.Now()
	testenv.Must(t, r.Stop(ctx))
	if took := time.Since(begin); took > Patience {
		t.Errorf("a process with the default action took %v to end", took)
	}
	if code := r.Status(); code != 143 && code != 137 {
		t.Errorf("status %d", code)
	}
}

func testLeftChildren(t *testing.T, c Config) {
	f := Up(t, c.Runtime, c.function(t))
	r := f.Start("sh", "-c", "setsid sleep 1000 & echo started; exit 4")
	if code := r.Status(); code != 4 || r.Out.String() != "started\n" {
		t.Errorf("status %d, %s", code, r.Out)
	}
	noProcesses(t, f)
}

func testRemoveRunning(t *testing.T, c Config) {
	f := Up(t, c.Runtime, c.function(t))
	plumb(t, f)
	r := f.Start("sh", "-c", "trap '' TERM; echo up; while :; do sleep 1; done")
	r.Await("up")
	f.Remove()
	f.NothingLeft()
	if code, _ := r.Wait(); code == 0 {
		t.Error("a command that was killed ended with status 0")
	}
	if r.ID().Alive() {
		t.Error("the command still runs")
	}
}
