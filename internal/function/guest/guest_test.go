// SPDX-License-Identifier: Apache-2.0

package guest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/drayage/dray/internal/function/guest/wire"
	"github.com/drayage/dray/test/testenv"
)

// patience bounds what an emulated guest on a busy machine may take.
const patience = 2 * time.Minute

const testPath = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// needs skips a test that cannot boot a guest.
func needs(t *testing.T) {
	t.Helper()
	testenv.Root(t)
	testenv.Program(t, Emulator, "depmod")
	t.Setenv(agentVariable, testenv.Built(t, AgentProgram))
}

func withPatience(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	return ctx
}

// run runs a program in the guest and returns what it printed and its status.
func run(ctx context.Context, m *Machine, stdin string, argv ...string) (string, int, error) {
	var out bytes.Buffer
	code, err := Run(ctx, m.Dir, Command{
		Request: wire.Request{Argv: argv, Env: []string{testPath}},
		Stdin:   strings.NewReader(stdin), Stdout: &out, Stderr: &out,
	})
	return out.String(), code, err
}

// TestGuest boots one guest and runs all tests in it.
func TestGuest(t *testing.T) {
	needs(t)
	share := t.TempDir()
	m, err := Boot(withPatience(t), Config{
		Name: "dray-test", Dir: t.TempDir(), CPUs: []int{0}, Shares: []Share{{Path: share}},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(m.Kill)
	t.Logf("booted %s with %s in %v", m.Kernel, m.Accel, m.Boot.Round(10*time.Millisecond))
	for name, test := range map[string]func(*testing.T, *Machine){
		"output and status": testOutput, "programs that cannot be run": testBadPrograms,
		"input":        testInput,
		"many at once": testMany, "what is left is killed": testLeft, "a client that goes": testGone,
		"cancelled": testCancelled, "signals": testSignals, "limits": testLimits, "the kernel's own modules": testModules,
		"one CPU":     testCPU,
		"no secrets":  testUnconfined,
		"a directory": func(t *testing.T, m *Machine) { testShare(t, m, share) },
	} {
		t.Run(strings.ReplaceAll(name, " ", "-"), func(t *testing.T) { test(t, m) })
	}
}

func expect(t *testing.T, m *Machine, want string, status int, argv ...string) {
	t.Helper()
	out, code, err := run(withPatience(t), m, "", argv...)
	if err != nil || code != status || out != want {
		t.Errorf("%q: status %d, %q, %v", argv, code, out, err)
	}
}

func testOutput(t *testing.T, m *Machine) {
	expect(t, m, "out\n", 7, "sh", "-c", "echo out; exit 7")
	expect(t, m, m.Kernel+"\n", 0, "uname", "-r")
	expect(t, m, "dray-test\n", 0, "cat", "/proc/sys/kernel/hostname")
	out, code, err := run(withPatience(t), m, "", "head", "-c", "3000000", "/dev/zero")
	if err != nil || code != 0 || len(out) != 3000000 {
		t.Errorf("much output: %d bytes, status %d, %v", len(out), code, err)
	}
}

func testBadPrograms(t *testing.T, m *Machine) {
	for _, program := range []string{"no-such-program", "/no/such/program", "/etc/passwd", "/etc"} {
		_, _, err := run(withPatience(t), m, "", program)
		var bad *StartError
		if !errors.As(err, &bad) || bad.Program != program || bad.Reason == "" {
			t.Errorf("%s: %v", program, err)
		}
	}
}

func testInput(t *testing.T, m *Machine) {
	text := strings.Repeat("0123456789abcdef", 20000) // beyond every window
	out, code, err := run(withPatience(t), m, text, "cat")
	if err != nil || code != 0 || out != text {
		t.Errorf("cat: %d bytes of %d, status %d, %v", len(out), len(text), code, err)
	}
	if out, code, err = run(withPatience(t), m, text, "head", "-c", "5"); err != nil || code != 0 || out != text[:5] {
		t.Errorf("a program that does not read all its input: %q, status %d, %v", out, code, err)
	}
}

func testMany(t *testing.T, m *Machine) {
	var wg sync.WaitGroup
	for i := range Channels {
		wg.Add(1)
		go func() {
			defer wg.Done()
			expect(t, m, fmt.Sprintln(i), i, "sh", "-c", fmt.Sprintf("sleep 1; echo %d; exit %d", i, i))
		}()
	}
	wg.Wait()
}

func testLeft(t *testing.T, m *Machine) {
	expect(t, m, "started\n", 4, "sh", "-c", "setsid sleep 4711 >/dev/null & echo started; exit 4")
	expect(t, m, "", 1, "pgrep", "-f", "^sleep 4711")
}

// testGone closes the connection under a program: the channel works again, and
// the program has been killed.
func testGone(t *testing.T, m *Machine) {
	c, err := Dial(withPatience(t), m.Dir)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	started := make(chan struct{})
	go func() {
		_, err := c.Run(withPatience(t), Command{
			Request: wire.Request{Argv: []string{"sh", "-c", "sleep 4712; cat /dev/zero"}, Env: []string{testPath}},
			Started: func() { close(started) },
		})
		done <- err
	}()
	<-started
	// A truncated frame, as a killed client leaves it.
	if _, err := c.conn.Write(wire.Append(nil, wire.Stdin, make([]byte, 100))[:50]); err != nil {
		t.Error(err)
	}
	c.Close()
	if err := <-done; err == nil {
		t.Error("a program succeeded although its connection was closed")
	}
	expect(t, m, "again\n", 0, "echo", "again")
	expect(t, m, "", 1, "pgrep", "-f", "^sleep 4712")
}

func testCancelled(t *testing.T, m *Machine) {
	ctx, cancel := context.WithCancel(withPatience(t))
	var out bytes.Buffer
	code, err := Run(ctx, m.Dir, Command{
		Request: wire.Request{Argv: []string{"sleep", "1000"}, Env: []string{testPath}}, Stdout: &out, Started: cancel,
	})
	if code != 137 || !errors.Is(err, context.Canceled) {
		t.Errorf("status %d, %v", code, err)
	}
}

func testSignals(t *testing.T, m *Machine) {
	signals := make(chan unix.Signal, 1)
	var out bytes.Buffer
	code, err := Run(withPatience(t), m.Dir, Command{
		Request: wire.Request{Argv: []string{"sh", "-c", "trap 'echo bye; exit 5' TERM; while :; do sleep 0.1; done"}, Env: []string{testPath}},
		Stdout:  &out, Signals: signals,
		// The shell needs a moment to set its trap.
		Started: func() { time.AfterFunc(time.Second, func() { signals <- unix.SIGTERM }) },
	})
	if err != nil || (code != 5 && code != 143) {
		t.Errorf("status %d, %q, %v", code, out.String(), err)
	}
	expect(t, m, "", 137, "sh", "-c", "kill -9 $$")
}

func testLimits(t *testing.T, m *Machine) {
	request := wire.Request{
		Argv: []string{"perl", "-e", `$x = "a" x (100 << 20); print "had\n"`}, Env: []string{testPath},
	}
	if code, err := Run(withPatience(t), m.Dir, Command{Request: request}); code != 0 || err != nil {
		t.Errorf("without a limit: status %d, %v", code, err)
	}
	request.Group, request.Memory = "small", 32<<20
	if code, err := Run(withPatience(t), m.Dir, Command{Request: request}); code != 137 || err != nil {
		t.Errorf("100 MiB in 32: status %d, %v", code, err)
	}
}

// testModules uses features that most hosts' kernels have only as modules.
func testModules(t *testing.T, m *Machine) {
	const script = `ip link add v0 type veth peer name v1 && tc qdisc add dev v0 root handle 1: hfsc default 1 &&
		tc class add dev v0 parent 1: classid 1:1 hfsc ls rate 10mbit ul rate 10mbit && tc qdisc show dev v0 root | cut -d' ' -f2
		for q in sfq codel fq_codel netem; do tc qdisc replace dev v1 root $q && echo $q; done; modprobe openvswitch && echo ovs; ip link del v0`
	expect(t, m, "hfsc\nsfq\ncodel\nfq_codel\nnetem\novs\n", 0, "sh", "-c", script)
}

func testCPU(t *testing.T, m *Machine) {
	expect(t, m, "1\n", 0, "nproc")
	monitor, err := openMonitor(context.Background(), m.Dir)
	if err != nil {
		t.Fatal(err)
	}
	defer monitor.close()
	threads, err := monitor.vcpuThreads()
	if err != nil || len(threads) != 1 {
		t.Fatalf("threads %v, %v", threads, err)
	}
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(threads[0], &set); err != nil || set.Count() != 1 || !set.IsSet(0) {
		t.Errorf("the virtual CPU may run on %v (%v)", set, err)
	}
}

func testShare(t *testing.T, m *Machine, share string) {
	expect(t, m, "", 0, "sh", "-c", "echo result >"+share+"/file")
	if text, err := os.ReadFile(filepath.Join(share, "file")); err != nil || string(text) != "result\n" {
		t.Errorf("the guest's file: %q, %v", text, err)
	}
	// The guest may change all other host files, and the host does not see it.
	beside := filepath.Join(filepath.Dir(share), "dray-test-of-the-guest")
	expect(t, m, "", 0, "sh", "-c", "mkdir -p "+filepath.Dir(beside)+" && echo x >"+beside+" && echo x >>/etc/hostname")
	if _, err := os.Stat(beside); !os.IsNotExist(err) {
		t.Errorf("the guest wrote to the host: %v", err)
	}
}

// TestGuestThatDoesNotBoot boots guests that end at once, or take too long.
func TestGuestThatDoesNotBoot(t *testing.T) {
	needs(t)
	kernel, err := FindKernel(withPatience(t), Generic)
	if err != nil {
		t.Fatal(err)
	}
	c := Config{Name: "dray-test-hung", Dir: t.TempDir(), VCPUs: 1}
	none := kernel
	none.Image = "/etc/passwd"
	_, err = c.boot(withPatience(t), none, TCG, patience)
	if !errors.Is(err, errEnded) || !strings.Contains(err.Error(), "dray-test-hung") || !strings.Contains(err.Error(), fileQEMULog) {
		t.Errorf("an invalid kernel: %v", err)
	}
	begin := time.Now()
	_, err = c.boot(withPatience(t), kernel, TCG, 100*time.Millisecond)
	if err == nil || !strings.Contains(err.Error(), "does not answer") {
		t.Errorf("a guest that takes too long: %v", err)
	}
	if took := time.Since(begin); took > patience/2 {
		t.Errorf("it was killed after %v", took)
	}
}
