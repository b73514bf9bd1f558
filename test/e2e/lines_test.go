// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/drayage/dray/internal/result/record"
)

// slow is the rate of the slower line of a row, in bit/s.
const slow = 100e6

// inARow is a pair on the ends of three hosts in a row:
//
//	site [ a ]──ab── 1 Gb/s ── edge ── 100 Mb/s ──ab──[ b ] core
func inARow(p pair) string {
	return strings.NewReplacer(
		"functions:\n", `hosts:
  machines: [{name: site, cpus: 1}, {name: edge, cpus: 1}, {name: core, cpus: 1}]
  lines: [{between: [site, edge], rate: 1Gbps}, {between: [edge, core], rate: 100Mbps}]
functions:
`,
		"- name: a\n", "- name: a\n    host: site\n    cpus: 1\n", "- name: b\n", "- name: b\n    host: core\n    cpus: 1\n").Replace(p.yaml())
}

// TestRunOverLines judges a link over two lines: the slower one limits what is measured.
func TestRunOverLines(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	p := pair{Name: "row", Command: `[sleep, "1000"]`, Isolation: "no-shared-memory", Requires: "{min_bitrate: 5Mbps}"}
	r, out := b.measure(0, "run", b.file(inARow(p)))
	if !strings.Contains(r.Stdout, record.MarkSimulatedHosts) {
		t.Errorf("the verdicts are without the mark: %s", r)
	}
	measured := 0
	for _, trial := range benchRecords(t, out) {
		if trial.Throughput == nil {
			continue
		}
		measured++
		if got := trial.Throughput.BitsPerSecond; got == 0 || got > slow {
			t.Errorf("record %s has %d bit/s over a line of %.0f", trial.ID, got, slow)
		}
	}
	if measured == 0 {
		t.Error("no throughput was measured")
	}
	if left := b.leftovers(p.Name); len(left) > 0 {
		t.Errorf("the run left %v", left)
	}
}

// TestChainOnLinesChanges applies a changed command to a chain that is up, moves its link,
// and takes it down: hosts and CPUs stay meanwhile.
func TestChainOnLinesChanges(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	p := pair{Name: "lines", Runtime: "runc", Face: "native", Command: `[sleep, "1000"]`}
	b.want(0, "up", b.file(inARow(p)))
	p.Command = `[sleep, "2000"]`
	b.want(0, "apply", b.file(inARow(p)))
	b.want(0, "relink", p.Name, "ab", "ovs-vxlan")
	if got := b.stream(p.Name, generator(t), "5000", "2kpps", func() {}); got.Received == 0 || got.Corrupt+got.Duplicates > 0 {
		t.Errorf("over ovs-vxlan the sink saw %+v", got)
	}
	b.want(0, "down", p.Name)
	if left := b.leftovers(p.Name); len(left) > 0 {
		t.Errorf("dray down left %v", left)
	}
}

// TestKillWithLines kills dray while it brings hosts and lines up: gc removes all of them.
func TestKillWithLines(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	for _, made := range []string{"router-site.net", "router-core.net", "../link/ab/host2.net"} {
		cmd := b.command(context.Background(), "up", b.file(inARow(pair{Name: "victim", Command: `[sleep, "1000"]`})))
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		hosts := filepath.Join(b.state, "victim", "hosts")
		awaitFile(t, filepath.Join(hosts, made))
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if _, err := os.Stat(hosts); err != nil {
			t.Errorf("killed too late: %v", err)
		}
		b.collect()
		if left := b.leftovers("victim"); len(left) > 0 {
			t.Fatalf("killed after %s, gc left %v", made, left)
		}
	}
}

// TestHostsTooManyToSimulate can be planned, and are refused before anything is made.
func TestHostsTooManyToSimulate(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	machines := strings.Repeat(", {name: hN, cpus: 1}", 14)
	for i := range 14 {
		machines = strings.Replace(machines, "hN", fmt.Sprintf("h%d", i), 1)
	}
	text := strings.Replace(inARow(pair{Name: "wide"}), "{name: core, cpus: 1}", "{name: core, cpus: 1}"+machines, 1)
	b.want(0, "plan", b.file(text))
	for _, command := range []string{"up", "run"} {
		if r := b.want(3, command, b.file(text)); !strings.Contains(r.Err, "one machine simulates at most 16 hosts") {
			t.Errorf("dray %s says %s", command, r)
		}
	}
	if left := b.leftovers("wide"); len(left) > 0 {
		t.Errorf("a refused chain left %v", left)
	}
}
