// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/drayage/dray/internal/result/report"
	"github.com/drayage/dray/internal/spec/experiment"
	"github.com/drayage/dray/test/testenv"
)

// toolCells have one short cell for each tool of an experiment, with a figure of it. The checks and
// the RAN have tests of their own.
var toolCells = map[experiment.Tool]struct{ figure, cell string }{
	experiment.ToolFrames:     {"packet_rate", "transport: veth, face: netdev, runtime: process, size: 64, load: 10kpps"},
	experiment.ToolTCP:        {"throughput", "transport: veth, runtime: process"},
	experiment.ToolRequests:   {"round_trip", "transport: veth, runtime: process"},
	experiment.ToolPingPong:   {"latency_mean", "transport: veth, runtime: process"},
	experiment.ToolUDP:        {"jitter", "transport: veth, runtime: process, load: 1Mbps"},
	experiment.ToolOneWay:     {"latency_mean", "transport: veth, runtime: process, message: 1470, load: 1Mbps"},
	experiment.ToolStart:      {"start_time", "runtime: process"},
	experiment.ToolCyclictest: {"wakeup_max", ""},
	experiment.ToolSpin:       {"stall_max", "runtime: vm"},
	experiment.ToolDensity:    {"functions", "runtime: process, functions: 3"},
	experiment.ToolPlanned:    {"functions", ""},
	experiment.ToolRecovery:   {"outage", "transport: shm, runtime: process"},
	experiment.ToolImage:      {"runs", "image: debian, runtime: runc"},
	experiment.ToolEcho:       {"round_trip", "transport: veth, face: netdev, runtime: process"},
	experiment.ToolSockets:    {"packet_rate", "transport: veth, runtime: process, kernel_face: tap"},
	experiment.ToolPool:       {"sessions_moved", "runtime: process, workers: 2, event: leave"},
	experiment.ToolQueue:      {"latency_mean", "transport: shm, face: native, runtime: process, qdisc: tbf, queue: fq_codel, rate: 20Mbps"},
	experiment.ToolClocks:     {"clock_difference", "transport: veth, runtime: process"},
}

// Every measuring tool measures one short cell, with what it needs in earnest. On a busy machine a tool
// may see nothing in its second, so each has three tries.
func TestEveryTool(t *testing.T) {
	testenv.Program(t, "iperf", "iperf3", "qperf", "sockperf", "cyclictest", "oslat", "mmdebstrap", "qemu-system-x86_64", "runc", "dpdk-testpmd", "redis-server")
	var left []experiment.Tool
	for _, tool := range experiment.Tools() {
		if _, ok := toolCells[tool]; ok {
			left = append(left, tool)
		} else if !slices.Contains([]experiment.Tool{experiment.ToolChecks, experiment.ToolRAN, experiment.ToolFronthaul}, tool) {
			t.Errorf("no cell for the tool %s", tool)
		}
	}
	b := newBench(t)
	b.env = append(b.env, "DRAY_LIB="+filepath.Dir(testenv.Built(t, "librte_net_dray.so")))
	for range 3 {
		if left = b.measuredNothing(left); len(left) == 0 {
			return
		}
	}
	t.Errorf("%v measured nothing", left)
}

// measuredNothing measures once with each of these tools, and returns those that gave no figure.
func (b *bench) measuredNothing(tools []experiment.Tool) (left []experiment.Tool) {
	b.t.Helper()
	text := "apiVersion: drayage/v1\nkind: Experiment\nname: tools\ntitle: every tool\nsource: nobody\nrows:\n"
	for _, tool := range tools {
		c := toolCells[tool]
		text += fmt.Sprintf("  - {name: %s, title: %s, figure: %s, cell: {tool: %s%s}}\n", tool, tool, c.figure, tool, strings.TrimSuffix(", "+c.cell, ", "))
	}
	type result struct{ Lines []report.ExperimentLine }
	got := decode[result](b.t, b.want(0, "bench", b.file(text), "--rounds", "1", "--out", filepath.Join(b.t.TempDir(), "out"), "--seed", "1", "--json"))
	if len(got.Lines) != len(tools) {
		b.t.Errorf("%d rows, want %d", len(got.Lines), len(tools))
	}
	for _, l := range got.Lines {
		held := l.Holds != nil && *l.Holds
		if l.N != 1 || l.Failed != "" || l.NotRun != "" || !held && (l.Measured == nil || *l.Measured <= 0) {
			b.t.Logf("%s: %+v", l.Row, l)
			left = append(left, experiment.Tool(l.Row))
		}
	}
	return left
}
