// SPDX-License-Identifier: Apache-2.0

package runtimetest

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"net/netip"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/drayage/dray/internal/function/runtime"
	"github.com/drayage/dray/internal/host"
	"github.com/drayage/dray/internal/host/step"
	"github.com/drayage/dray/internal/spec/chain"
	"github.com/drayage/dray/test/testenv"
)

// Config describes one runtime under test. The image or root of Function has sh,
// perl, coreutils and nothing else that tests need.
type Config struct {
	Runtime runtime.Runtime
	// Function makes each test's function; it is called once per test. nil: an empty
	// function.
	Function func(t *testing.T) chain.Function
	// External means that the runtime does not run the function: nothing is started.
	External bool
	// Machine means that a function is a virtual machine: it numbers its CPUs from 0,
	// sees none of the host's sockets, and boots one at a time.
	Machine bool
	// LateSize means that a terminal gets its first size after its program has started.
	LateSize bool
	// Only names the tests to run; none: all.
	Only []string
}

func (c Config) function(t *testing.T) chain.Function {
	if c.Function == nil {
		return chain.Function{}
	}
	return c.Function(t)
}

// namedTest is one test of the suite.
type namedTest struct {
	name string
	run  func(*testing.T, Config)
}

// Run runs the suite.
func Run(t *testing.T, c Config) {
	t.Setenv(callersVariable, "of the caller") // which no function may see
	provideProgram(t)
	tests := []namedTest{
		{"the sandbox is there before anything starts", testSandbox},
		{"ports are plumbed into the sandbox", testPort},
		{"instruments run in the sandbox", testInstrument},
		{"a failing step leaves nothing", testFaults},
		{"an identical sandbox comes up again", testUpAgain},
		{"two chains with one function name", testTwoChains},
		{"no directory of ports where none is native", testNoPorts},
	}
	if !c.Machine {
		tests = append(tests, namedTest{"native ports are reached by their sockets", testPorts})
	}
	if c.External {
		tests = append(tests, namedTest{"nothing is started", testExternal})
	} else {
		tests = append(tests, commandTests...)
		tests = append(tests, limitTests...)
		if !c.Machine {
			tests = append(tests, namedTest{"DPDK applications are told of their devices", testDpdk},
				namedTest{"directories of dpdk ports are small", testSmallLinks},
				namedTest{"a TUN interface belongs to the function", testTun},
				namedTest{"no TUN device without a TUN interface", testNoTun})
		}
	}
	for _, name := range c.Only {
		if !slices.ContainsFunc(tests, func(n namedTest) bool { return n.name == name }) {
			t.Errorf("the suite has no test %q", name)
		}
	}
	for _, test := range tests {
		if len(c.Only) > 0 && !slices.Contains(c.Only, test.name) {
			continue
		}
		t.Run(strings.ReplaceAll(test.name, " ", "-"), func(t *testing.T) {
			if !c.Machine {
				t.Parallel()
			}
			test.run(t, c)
		})
	}
}

func testSandbox(t *testing.T, c Config) {
	f := Up(t, c.Runtime, c.function(t))
	err := f.Sandbox.Netns.Do(func() error {
		lo, err := net.InterfaceByName("lo")
		if err == nil && lo.Flags&net.FlagUp == 0 {
			t.Error("the loopback is down")
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
	own, err := host.HostNetns.Inode()
	testenv.Must(t, err)
	if ino, err := f.Sandbox.Netns.Inode(); err != nil || ino == own {
		t.Errorf("namespace inode %d (host %d), %v", ino, own, err)
	}
}

// plumb connects a port named f1u in the sandbox to the test's own namespace.
func plumb(t *testing.T, f *Function) (mac net.HardwareAddr) {
	t.Helper()
	mac = net.HardwareAddr{2, 0, 0, 0, 0, 1}
	peer := host.Netns{Path: filepath.Join(filepath.Dir(f.Spec.Dir), "peer")}
	pin := host.NamespaceResource(peer.Path)
	t.Cleanup(func() {
		if err := host.Removers()[pin.Kind](context.Background(), pin); err != nil {
			t.Error(err)
		}
	})
	testenv.Must(t, host.CreateNetns(peer.Path))
	err := host.CreateVeth(
		host.Iface{Netns: f.Sandbox.Netns, Name: "f1u", MAC: mac, MTU: 1600},
		host.Iface{Netns: peer, Name: "peer", MAC: net.HardwareAddr{2, 0, 0, 0, 0, 2}, MTU: 1600})
	testenv.Must(t, err)
	for ns, name := range map[host.Netns]string{f.Sandbox.Netns: "f1u", peer: "peer"} {
		testenv.Must(t, ns.SetUp(name))
	}
	testenv.Must(t, f.Sandbox.Netns.AddAddr("f1u", netip.MustParsePrefix("10.9.8.1/24")))
	return mac
}

func testPort(t *testing.T, c Config) {
	f := Up(t, c.Runtime, c.function(t))
	plumb(t, f)
	if c.External {
		if out := inPlace(t, f, "cat", "/proc/net/dev"); !strings.Contains(out, "f1u:") {
			t.Errorf("the port is not in the namespace: %s", out)
		}
		return
	}
	for range 2 { // a restart keeps the namespace and its ports
		out, code := f.Output("cat", "/proc/net/dev", "/proc/net/fib_trie")
		if code != 0 || !strings.Contains(out, "f1u:") || !strings.Contains(out, "10.9.8.1") {
			t.Errorf("the command does not see its port: status %d, %s", code, out)
		}
	}
}

// inPlace runs a host program as instruments are run.
func inPlace(t *testing.T, f *Function, argv ...string) string {
	t.Helper()
	text, err := json.Marshal(f.Sandbox) // as state files keep it
	testenv.Must(t, err)
	var sandbox runtime.Sandbox
	testenv.Must(t, json.Unmarshal(text, &sandbox))
	var out Buffer
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Stdout, cmd.Stderr = &out, &out
	testenv.Must(t, sandbox.Place().Start(cmd))
	if err := cmd.Wait(); err != nil {
		t.Fatalf("%q: %v: %s", argv, err, out.String())
	}
	return out.String()
}

func testInstrument(t *testing.T, c Config) {
	fn := c.function(t)
	fn.Memory, fn.CPUs.Set = 256<<20, []int{0}
	f := Up(t, c.Runtime, fn)
	out := inPlace(t, f, "sh", "-c", "cat /proc/self/cgroup; readlink /proc/self/ns/net; nproc")
	if !strings.Contains(out, f.Spec.Cgroup.Path+"/tools\n") {
		t.Errorf("the instrument is not in the function's cgroup: %s", out)
	}
	ino, err := f.Sandbox.Netns.Inode()
	testenv.Must(t, err)
	if !strings.Contains(out, "net:["+strconv.FormatUint(ino, 10)+"]") {
		t.Errorf("the instrument is not in the function's network namespace %d: %s", ino, out)
	}
	if !strings.HasSuffix(out, "\n1\n") {
		t.Errorf("the instrument may use more than the function's one CPU: %s", out)
	}
}

var errInjected = errors.New("injected")

// testFaults makes each step of the sandbox fail, before and after it is done.
func testFaults(t *testing.T, c Config) {
	fn := c.function(t)
	fn.CPUs.Set = []int{0}
	probe, err := c.Runtime.Sandbox(New(t, c.Runtime, fn).Spec)
	testenv.Must(t, err)
	names := map[string]bool{}
	for i, s := range probe.Steps {
		if names[s.Name] {
			t.Errorf("two steps are named %q", s.Name)
		}
		names[s.Name] = true
		for _, phase := range []step.Phase{step.Before, step.After} {
			f := New(t, c.Runtime, fn)
			n := -1
			err := f.Up(func(_ step.Step, p step.Phase) error {
				if p == step.Before {
					n++
				}
				if n == i && p == phase {
					return errInjected
				}
				return nil
			})
			if !errors.Is(err, errInjected) {
				t.Errorf("fault %s step %q: error %v", phase, s.Name, err)
			}
			f.NothingLeft()
		}
	}
	if len(names) == 0 {
		t.Error("the sandbox has no steps")
	}
}

func testUpAgain(t *testing.T, c Config) {
	f := Up(t, c.Runtime, c.function(t))
	f.Remove()
	f.NothingLeft()
	testenv.Must(t, f.Up(nil))
	if !f.Sandbox.Netns.Exists() {
		t.Error("no network namespace")
	}
}

func testTwoChains(t *testing.T, c Config) {
	one, two := Up(t, c.Runtime, c.function(t)), Up(t, c.Runtime, c.function(t))
	if one.Spec.Function.Name != two.Spec.Function.Name {
		t.Fatal("the names differ")
	}
	var running *Running
	if !c.External {
		running = two.Start("sh", "-c", "echo up; exec sleep 1000")
		running.Await("up")
		if out, code := one.Output("echo", "other"); out != "other\n" || code != 0 {
			t.Errorf("status %d, %s", code, out)
		}
	}
	one.Remove()
	one.NothingLeft()
	if !two.Sandbox.Netns.Exists() {
		t.Error("removing one chain's function took the other's namespace")
	}
	if running != nil && !running.ID().Alive() {
		t.Error("removing one chain's function killed the other's")
	}
}

func testExternal(t *testing.T, c Config) {
	f := Up(t, c.Runtime, c.function(t))
	if _, err := f.TryStart("true"); !errors.Is(err, runtime.ErrNothingToStart) {
		t.Errorf("start: %v", err)
	}
	if _, err := f.Runtime.Exec(context.Background(), f.Spec, []string{"true"}, runtime.Stdio{}); err == nil {
		t.Error("exec ran in an external function")
	}
}

// gone reports whether no process has the pid, not even a zombie.
func gone(pid int) bool { return unix.Kill(pid, 0) == unix.ESRCH }
