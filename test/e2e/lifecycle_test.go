// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/drayage/dray/internal/host/leftover"
)

func TestUpStatusExecLogsDown(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	file := b.file(pair{Name: "life", Command: `[sh, -c, "echo hello from $0; sleep 1000"]`}.yaml())
	b.want(0, "up", file)

	status := b.want(0, "status", "life")
	for _, want := range []string{"chain life", "up", "function a", "running", "link ab", "veth"} {
		if !strings.Contains(status.Stdout, want) {
			t.Errorf("status lacks %q:\n%s", want, status)
		}
	}
	if out := b.want(0, "exec", "life", "a", "--", "ip", "-br", "address", "show", "p0"); !strings.Contains(out.Stdout, "198.18.") {
		t.Errorf("the port has no address from 198.18.0.0/15: %s", out)
	}
	if out := b.dray("exec", "life", "a", "--", "sh", "-c", "exit 7"); out.Code != 7 {
		t.Errorf("exec does not pass the exit code on: %s", out)
	}
	if out := b.dray("exec", "life", "a", "sh", "-c", "exit 8"); out.Code != 8 { // as docker users write it
		t.Errorf("exec without --: %s", out)
	}
	for end := time.Now().Add(patience); ; time.Sleep(50 * time.Millisecond) {
		out := b.want(0, "logs", "life", "b")
		if strings.Contains(out.Stdout, "hello from") {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("logs: %s", out)
		}
	}
	if out := b.want(1, "up", file); !strings.Contains(out.Err, "dray down life") {
		t.Errorf("a second up does not name the fix: %s", out)
	}
	b.want(0, "down", "life")
	if out := b.want(1, "down", "life"); !strings.Contains(out.Err, `no chain "life"`) {
		t.Errorf("a second down: %s", out)
	}
}

// TestPingInAContainer is a user's first attempt, and ping has a capability that
// the container lacks.
func TestPingInAContainer(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.want(0, "up", b.file(pair{Name: "ping", Runtime: "runc"}.yaml()))
	defer b.want(0, "down", "ping")
	if r := b.want(0, "exec", "ping", "a", "--", "ping", "-c1", "-W5", "198.18.0.2"); !strings.Contains(r.Stdout, " 0% packet loss") {
		t.Error(r)
	}
}

func TestACommandThatFailsTakesTheChainDown(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	for name, c := range map[string]struct {
		command, says string
		exit          int
	}{
		"exits":   {`[sh, -c, "echo the reason; exit 3"]`, "the reason", 1},
		"missing": {`[sh, -c, "exec /no/such/program"]`, "/no/such/program", 1},
		"typo":    {`[/no/such/program]`, "/no/such/program", 3}, // found before anything starts
	} {
		out := b.want(c.exit, "up", b.file(pair{Name: name, Command: c.command}.yaml()))
		if !strings.Contains(out.Err, c.says) {
			t.Errorf("%s: the error does not say %q: %s", name, c.says, out)
		}
	}
}

func TestRestartPolicyBringsACommandBack(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	file := b.file(pair{Name: "again", Restart: "always", Command: `[sleep, "1000"]`}.yaml())
	b.want(0, "up", file)
	defer b.want(0, "down", "again")
	before := functionPID(t, b, "again", "a")
	if err := syscall.Kill(before, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	deadline := time.Now().Add(patience)
	for time.Now().Before(deadline) {
		if now := functionPID(t, b, "again", "a"); now != 0 && now != before {
			if out := b.want(0, "exec", "again", "a", "--", "ip", "link", "show", "p0"); !strings.Contains(out.Stdout, "UP") {
				t.Errorf("the port did not survive: %s", out)
			}
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	t.Error("the function was not restarted")
}

// functionPID is the function's first process; 0 if it is not running.
func functionPID(t *testing.T, b *bench, chain, function string) int {
	t.Helper()
	type status struct {
		Functions []struct {
			Name    string
			Process struct{ PID int }
		}
	}
	for _, s := range decodeChains[status](t, b.want(0, "status", chain, "--json")) {
		for _, f := range s.Functions {
			if f.Name == function {
				return f.Process.PID
			}
		}
	}
	return 0
}

// What stays when dray up has ended holds no file of its caller: neither a lock, as of flock(1), nor a pipe that
// someone reads to its end, nor a secret that a function could read.
func TestNothingKeepsTheCallersFiles(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer read.Close()
	up := b.command(context.Background(), "up", b.file(pair{Name: "files", Face: "native", Command: `[sleep, "1000"]`}.yaml()))
	up.ExtraFiles = []*os.File{write}
	out, err := up.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	defer b.want(0, "down", "files")
	if err := errors.Join(write.Close(), read.SetReadDeadline(time.Now().Add(patience))); err != nil {
		t.Fatal(err)
	}
	if _, err := read.Read(make([]byte, 1)); err != io.EOF {
		t.Errorf("a process of the chain still has the pipe: %v", err)
	}
}

func TestTwoChainsDoNotDisturbEachOther(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	one := pair{Name: "one", Command: `[sleep, "1000"]`, Transport: "bridge"}
	two := pair{Name: "two", Command: `[sleep, "1000"]`, Transport: "bridge"}
	b.want(0, "up", b.file(one.yaml()))
	b.want(0, "up", b.file(two.yaml()))
	b.want(0, "down", "one")
	if out := b.want(0, "exec", "two", "a", "--", "ping", "-c1", "-W5", "198.18.0.2"); !strings.Contains(out.Stdout, " 0% packet loss") {
		t.Errorf("chain two lost its link: %s", out)
	}
	b.want(0, "down", "two")
}

func TestFiftyLinks(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	file := b.file(many("fifty", 50))
	start := time.Now()
	b.want(0, "up", file)
	up := time.Since(start)
	start = time.Now()
	b.want(0, "down", "fifty")
	t.Logf("50 links, 100 functions: up %.2f s, down %.2f s", up.Seconds(), time.Since(start).Seconds())
}

func TestSignalsRemoveEverything(t *testing.T) {
	for sig, want := range map[syscall.Signal]int{syscall.SIGINT: 130, syscall.SIGTERM: 143} {
		t.Run(sig.String(), func(t *testing.T) {
			b := newBench(t)
			cmd, _ := b.measuring(pair{Name: "sig", Transport: "bridge", Command: `[sleep, "1000"]`, Requires: "{min_bitrate: 1Mbps}"}, t.TempDir())
			if err := cmd.Process.Signal(sig); err != nil {
				t.Fatal(err)
			}
			_ = cmd.Wait()
			if code := cmd.ProcessState.ExitCode(); code != want {
				t.Errorf("exit %d, want %d", code, want)
			}
		})
	}
}

// TestKillAtARandomMoment kills dray while it brings a chain up or measures it.
// DRAY_TEST_KILLS sets how many times; after each kill it runs gc and checks the
// whole host.
func TestKillAtARandomMoment(t *testing.T) {
	b := newBench(t)
	kills := 10
	if s := os.Getenv("DRAY_TEST_KILLS"); s != "" {
		var err error
		if kills, err = strconv.Atoi(s); err != nil {
			t.Fatal(err)
		}
	}
	seed := rand.Uint64()
	rng := rand.New(rand.NewPCG(seed, 0))
	t.Logf("seed %d, %d kills", seed, kills)
	committed := 0
	for i := range kills {
		p := pair{Name: "victim", Command: `[sleep, "1000"]`}
		p.Runtime = []string{"process", "runc"}[rng.IntN(2)]
		p.Transport = []string{"veth", "bridge", "macvlan", "ovs", "shm"}[rng.IntN(5)]
		if p.Transport == "shm" || rng.IntN(4) == 0 { // packet sockets, now and then
			p.Face = "native"
		}
		argv, within := []string{"up", b.file(p.yaml())}, 1200*time.Millisecond
		if rng.IntN(3) == 0 { // now and then while it measures
			argv, within = []string{"run", argv[1], "--out", t.TempDir()}, 5*time.Second
		}
		cmd := b.command(context.Background(), argv...)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		delay := time.Duration(rng.Int64N(int64(within)))
		time.Sleep(delay)
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if b.collect() {
			committed++
		}
		if left := b.leftovers("victim"); len(left) > 0 {
			t.Fatalf("kill %d of dray %s, %s over %s, after %v left %v", i, argv[0], p.Runtime, p.Transport, delay, left)
		}
	}
	t.Logf("%d of %d had already been committed, and stayed until down", committed, kills)
}

// collect runs gc; a committed chain must survive it, and is removed by down.
func (b *bench) collect() (committed bool) {
	b.t.Helper()
	b.want(0, "gc")
	if _, err := os.Stat(b.state + "/victim"); err != nil {
		return false
	}
	if out := b.want(0, "status", "victim"); !strings.Contains(out.Stdout, "up") {
		b.t.Fatalf("gc left a chain that is not up: %s", out)
	}
	b.want(0, "down", "victim")
	return true
}

// leftovers are the remains on the host of this test's chain of that name.
func (b *bench) leftovers(chain string) []string {
	b.t.Helper()
	all, err := leftover.Take()
	if err != nil {
		b.t.Fatal(err)
	}
	var left []string
	for _, line := range all.Containing(filepath.Base(b.state)) {
		if strings.Contains(line, "/"+chain) {
			left = append(left, line)
		}
	}
	return left
}
