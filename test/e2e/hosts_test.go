// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/drayage/dray/internal/link/broker"
	"github.com/drayage/dray/internal/result/record"
)

// apart is a pair on two simulated hosts:
//
//	h1 [ a ]──ab── underlay ──ab──[ b ] h2
func apart(p pair) string {
	text := p.yaml()
	text = strings.Replace(text, "functions:\n", "hosts: {names: [h1, h2], underlay: {rate: 1Gbps}}\nfunctions:\n", 1)
	text = strings.Replace(text, "- name: a\n", "- name: a\n    host: h1\n", 1)
	return strings.Replace(text, "- name: b\n", "- name: b\n    host: h2\n", 1)
}

// TestBetweenHosts measures over each kind of tunnel: every record says that the
// hosts were simulated.
func TestBetweenHosts(t *testing.T) {
	for _, transport := range []string{"auto", "ovs-vxlan"} {
		t.Run(transport, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			p := pair{Name: "apart", Runtime: "process", Transport: transport, Isolation: "no-shared-memory", Requires: "{min_bitrate: 1Mbps, mtu: 1500}"}
			r, out := b.measure(0, "run", b.file(apart(p)))
			if !strings.Contains(r.Stdout, record.MarkSimulatedHosts) {
				t.Errorf("the verdicts are without the mark: %s", r)
			}
			trials := benchRecords(t, out)
			for _, trial := range trials {
				if !slices.Contains(trial.Marks, record.MarkSimulatedHosts) {
					t.Errorf("record %s has the marks %v", trial.ID, trial.Marks)
				}
			}
			if len(trials) == 0 {
				t.Error("nothing was measured")
			}
		})
	}
}

// TestTunnelMovesUnderNativePorts passes traffic between two native ports over one kind
// of tunnel, twice the other, and the first again. It refuses to move the link to a
// transport that cannot cross hosts.
func TestTunnelMovesUnderNativePorts(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	p := pair{Name: "tunnels", Runtime: "runc", Face: "native", Command: `[sleep, "1000"]`}
	b.want(0, "up", b.file(apart(p)))
	defer b.want(0, "down", p.Name)
	draygen := generator(t)
	for i, transport := range []string{"vxlan", "ovs-vxlan", "ovs-vxlan", "vxlan"} {
		if i > 0 {
			b.want(0, "relink", p.Name, "ab", transport)
		}
		got := b.stream(p.Name, draygen, "5000", "5kpps", func() {})
		if got.Received == 0 || got.Corrupt+got.Duplicates > 0 || got.Link.Kind != broker.KindNetdev {
			t.Errorf("over %s the sink saw %+v", transport, got)
		}
	}
	if r := b.want(3, "relink", p.Name, "ab", "shm"); !strings.Contains(r.Err+r.Stdout, "joins only ports on one host") {
		t.Errorf("shared memory between hosts is refused with %s", r)
	}
}

// TestPlacedFunctionsStay brings up two functions for which the planner chooses hosts: one
// host has memory for one of them only. A change of the chain keeps the hosts.
func TestPlacedFunctionsStay(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	p := pair{Name: "placed", Runtime: "runc", Face: "native", Command: `[sleep, "1000"]`}
	text := strings.NewReplacer(
		"functions:\n", "hosts: {machines: [{name: h1, cpus: 1, memory: 96Mi}, {name: h2, cpus: 1, memory: 96Mi}]}\nfunctions:\n",
		"- name: a\n", "- name: a\n    memory: 64Mi\n", "- name: b\n", "- name: b\n    memory: 64Mi\n").Replace(p.yaml())
	file := b.file(text)
	b.want(0, "up", file)
	defer b.want(0, "down", p.Name)
	b.want(0, "relink", p.Name, "ab", "ovs-vxlan")
	b.want(0, "apply", file) // another host would be refused
	if r := b.want(0, "status", p.Name); !strings.Contains(r.Stdout, "vxlan") {
		t.Errorf("the link is not between hosts: %s", r)
	}
}

// TestKillWithHosts kills dray while it brings hosts up: gc removes them and
// their underlay.
func TestKillWithHosts(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	for i, transport := range []string{"vxlan", "ovs-vxlan", "vxlan", "ovs-vxlan"} {
		file := b.file(apart(pair{Name: "victim", Transport: transport, Command: `[sleep, "1000"]`}))
		cmd := b.command(context.Background(), "up", file)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		delay := time.Duration(rand.Int64N(int64(time.Second)))
		if i < 2 { // not before hosts exist
			awaitFile(t, filepath.Join(b.state, "victim", "hosts", "host-h2.net"))
			delay = 0
		}
		time.Sleep(delay)
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		b.collect()
		if left := b.leftovers("victim"); len(left) > 0 {
			t.Fatalf("kill %d, over %s, after %v left %v", i, transport, delay, left)
		}
	}
}

func awaitFile(t *testing.T, path string) {
	t.Helper()
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		if _, err := os.Stat(path); err == nil {
			return
		}
	}
	t.Errorf("%s never came", path)
}
