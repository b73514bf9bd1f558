// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/drayage/dray/internal/function/docker/dockertest"
)

// rates needs only the quick trials, and so keeps the matrix short.
const rates = "{min_bitrate: 5Mbps, mtu: 1500}"

func TestTheSameChainInEveryRuntime(t *testing.T) {
	t.Parallel()
	t.Run("process", func(t *testing.T) { runPair(t, pair{Name: "proc", Runtime: "process"}) })
	t.Run("runc", func(t *testing.T) { runPair(t, pair{Name: "runc", Runtime: "runc"}) })
	t.Run("docker", func(t *testing.T) {
		client := dockertest.Start(t)
		dockertest.Import(t, client, "dray-e2e", "sleep", "ping")
		runPair(t, pair{Name: "dock", Runtime: "docker", Image: "dray-e2e"}, "DOCKER_HOST="+client.Host)
		testRemovedContainers(t, client)
	})
	t.Run("external", testExternal)
}

func TestTheSameChainOverEveryTransport(t *testing.T) {
	for _, transport := range []string{"veth", "macvlan", "bridge", "ovs"} {
		t.Run(transport, func(t *testing.T) { runPair(t, pair{Name: "over-" + transport, Runtime: "runc", Transport: transport}) })
	}
	t.Run("shm", func(t *testing.T) {
		runPair(t, pair{Name: "over-shm", Runtime: "runc", Transport: "shm", Face: "native"})
	})
	t.Run("packet sockets", func(t *testing.T) {
		runPair(t, pair{Name: "over-sockets", Runtime: "runc", Transport: "veth", Face: "native"})
	})
	t.Run("loopback", func(t *testing.T) {
		b := newBench(t)
		file := b.file(fmt.Sprintf(`
apiVersion: drayage/v1
kind: Chain
name: over-loopback
functions:
  - {name: a, runtime: process, ports: [{name: p0}, {name: p1}]}
links:
  - {name: ab, ends: [a.p0, a.p1], transport: loopback, requires: %s}
`, rates))
		b.measure(0, "run", file)
	})
}

// runPair runs the chain once and wants every requirement met.
func runPair(t *testing.T, p pair, env ...string) {
	t.Helper()
	t.Parallel()
	b := newBench(t)
	b.env = env
	if p.Command == "" {
		p.Command = `[sleep, "1000"]`
	}
	p.Requires = rates
	b.measure(0, "run", b.file(p.yaml()))
}

// testExternal connects two processes that Drayage did not start.
func testExternal(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	var functions strings.Builder
	for _, name := range []string{"a", "b"} {
		cmd := exec.Command("sleep", "1000")
		cmd.SysProcAttr = &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNET}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		defer func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }()
		fmt.Fprintf(&functions, "  - {name: %s, runtime: external, external: {pid: %d}, ports: [{name: p0}]}\n", name, cmd.Process.Pid)
	}
	file := b.file(fmt.Sprintf("apiVersion: drayage/v1\nkind: Chain\nname: ext\nfunctions:\n%slinks:\n  - {name: ab, ends: [a.p0, b.p0], requires: %s}\n", functions.String(), rates))
	b.measure(0, "run", file)
}

// TestStatusTellsThatAnExternalFunctionIsGone ends such a function's process.
func TestStatusTellsThatAnExternalFunctionIsGone(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	cmd := exec.Command("sleep", "1000")
	cmd.SysProcAttr = &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNET}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	file := b.file(fmt.Sprintf(`
apiVersion: drayage/v1
kind: Chain
name: ext
functions:
  - {name: a, runtime: external, external: {pid: %d}, ports: [{name: p0}]}
  - {name: b, runtime: process, ports: [{name: p0}]}
links:
  - {name: ab, ends: [a.p0, b.p0]}
`, cmd.Process.Pid))
	b.want(0, "up", file)
	defer b.want(0, "down", "ext")
	if r := b.want(0, "status", "ext"); strings.Contains(r.Stdout, "gone") {
		t.Errorf("gone while it runs: %s", r)
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	if r := b.want(0, "status", "ext"); !strings.Contains(r.Stdout, "gone") {
		t.Errorf("not gone after it ended: %s", r)
	}
}
