// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/drayage/dray/internal/function/dockercli"
)

// TestWhatTheKernelShowsIsTheTruth: somebody changes a port, dray status says so, and
// dray apply of the same file repairs it.
func TestWhatTheKernelShowsIsTheTruth(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	const name = "truth"
	file := b.file(pair{Name: name, Command: `[sleep, "1000"]`, Requires: "{max_bitrate: 100Mbps}"}.yaml())
	b.want(0, "up", file)
	defer func() { b.want(0, "down", name) }()
	for change, says := range map[string]string{
		"ip link delete p0":           "has no interface any more",
		"ip link set p0 down":         "port a.p0 is down, port b.p0 has no carrier",
		"tc qdisc delete dev p0 root": "has the qdisc noqueue, not tbf",
		"tc qdisc change dev p0 root tbf rate 1gbit burst 80kb latency 20ms": "has other parameters of its qdisc tbf",
		"ip link set p0 address 02:00:00:00:00:99":                           "has the MAC address 02:00:00:00:00:99",
		"ip link set p0 mtu 1400":                                            "has an MTU of 1400, not 1500",
		"ip addr flush dev p0":                                               "has lost its address",
		"ip link set p0 name other":                                          "has no interface any more",
		"ip link set p0 down && ip link set p0 mtu 9000":                     "port a.p0",
	} {
		b.want(0, "exec", name, "a", "--", "sh", "-c", change)
		if r := b.want(0, "status", name); !strings.Contains(r.Stdout, says) || !strings.Contains(r.Stdout, "but 1 link not whole") {
			t.Errorf("after %s, dray status says %s", change, r)
		}
		if r := b.want(0, "apply", file); !strings.Contains(r.Stdout, "replace") || !strings.Contains(r.Stdout, says) {
			t.Errorf("after %s, dray apply says %s", change, r)
		}
		b.wantWhole(name)
	}
	// What a function adds to its own ports is no fault.
	b.want(0, "exec", name, "a", "--", "sh", "-c", "ip addr add 192.0.2.1/24 dev p0 && ip route add 203.0.113.0/24 dev p0 && ip link add extra type veth")
	b.wantWhole(name)
	if r := b.want(0, "apply", file); !strings.Contains(r.Stdout, "nothing to change") {
		t.Errorf("with an address more, dray apply says %s", r)
	}
}

// TestAFunctionThatIsGoneIsStartedAgain by dray apply of the same file.
func TestAFunctionThatIsGoneIsStartedAgain(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	const name = "gone"
	file := b.file(pair{Name: name, Runtime: "runc", Command: `[sleep, "1000"]`}.yaml())
	b.want(0, "up", file)
	defer func() { b.want(0, "down", name) }()
	killFunction(t, b, name, "a")
	b.shows(name, "failed")
	if r := b.want(0, "apply", file); !strings.Contains(r.Stdout, "restart") || !strings.Contains(r.Stdout, "function a ended with status 137") {
		t.Errorf("dray apply says %s", r)
	}
	b.wantWhole(name)
}

// TestAFailedUpKeepsItsLogs until the chain comes up, or until dray gc.
func TestAFailedUpKeepsItsLogs(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	const name = "failed"
	bad := b.file(pair{Name: name, Command: `[sh, -c, "echo first; seq 100; exit 3"]`}.yaml())
	kept := filepath.Join(b.state, ".failed", name)
	for _, ends := range [][]string{{"up", b.file(pair{Name: name, Command: `[sleep, "1000"]`}.yaml())}, {"gc"}} {
		if r := b.want(1, "up", bad); !strings.Contains(r.Err, "ended with status 3") || !strings.Contains(r.Err, kept) {
			t.Errorf("%s", r)
		}
		if r := b.want(0, "logs", name, "a"); !strings.HasPrefix(r.Stdout, "first\n") || !strings.Contains(r.Err, "did not come up") {
			t.Errorf("dray logs says %s", r)
		}
		if log, err := os.ReadFile(filepath.Join(kept, "log", "a.log")); err != nil || !strings.HasPrefix(string(log), "first\n") {
			t.Errorf("%q, %v", log, err)
		}
		b.want(0, ends...)
		if _, err := os.Stat(kept); !os.IsNotExist(err) {
			t.Errorf("after dray %s, the logs are there: %v", ends[0], err)
		}
		if ends[0] == "up" {
			b.want(0, "down", name)
		}
	}
}

// wantWhole checks that status reports no fault, and that packets pass.
func (b *bench) wantWhole(chain string) {
	b.t.Helper()
	if r := b.want(0, "status", chain); strings.Contains(r.Stdout, ", but ") {
		b.t.Errorf("%s", r)
	}
	peer := "198.18.0.2"
	b.want(0, "exec", chain, "a", "--", "ping", "-c", "1", "-W", "20", peer)
}

// testRemovedContainers removes the containers of a function, which dray apply of the same file
// makes again, and then breaks the chain's journal: gc still removes them.
func testRemovedContainers(t *testing.T, client dockercli.Client) {
	t.Helper()
	b := newBench(t)
	b.env = []string{"DOCKER_HOST=" + client.Host}
	const name = "remade"
	file := b.file(pair{Name: name, Runtime: "docker", Image: "dray-e2e", Command: `[sleep, "1000"]`}.yaml())
	b.want(0, "up", file)
	if _, err := client.Output(context.Background(), "rm", "--force", "dray-remade-a", "dray-remade-a-pause"); err != nil {
		t.Fatal(err)
	}
	if r := b.want(0, "status", name); !strings.Contains(r.Stdout, "lost its network namespace") {
		t.Errorf("dray status says %s", r)
	}
	if r := b.want(0, "apply", file); !strings.Contains(r.Stdout, "add") || !strings.Contains(r.Stdout, "replace") {
		t.Errorf("dray apply says %s", r)
	}
	b.wantWhole(name)
	if err := os.WriteFile(filepath.Join(b.state, name, "journal.jsonl"), []byte("garbage\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	b.want(0, "gc")
	if left, err := client.Output(context.Background(), "ps", "--all", "--quiet", "--filter", "label=dray.chain="+name); err != nil || left != "" {
		t.Errorf("dray gc leaves containers %s, %v", left, err)
	}
	b.want(0, "up", file)
	b.want(0, "down", name)
	kept := filepath.Join(b.state, ".damaged")
	if list, err := filepath.Glob(kept + "/*-" + name + "-journal.jsonl"); err != nil || len(list) != 1 {
		t.Errorf("dray gc kept %v, %v", list, err)
	}
	if err := os.RemoveAll(kept); err != nil {
		t.Fatal(err)
	}
}
