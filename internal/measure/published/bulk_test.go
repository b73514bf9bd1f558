// SPDX-License-Identifier: Apache-2.0

package published

import (
	"strings"
	"testing"
	"time"

	"github.com/drayage/dray/internal/result/record"
	"github.com/drayage/dray/internal/spec/chain"
	"github.com/drayage/dray/internal/spec/experiment"
)

func TestOutlasts(t *testing.T) {
	at := time.Now()
	bulk := record.Trial{Start: at, Duration: 7 * time.Second}
	for name, c := range map[string]struct {
		start  time.Duration
		length time.Duration
		good   bool
	}{
		"within":    {time.Second, time.Second, true},
		"too early": {-time.Second, time.Second, false},
		"too late":  {6 * time.Second, 2 * time.Second, false},
	} {
		err := outlasts(bulk, at.Add(c.start), at.Add(c.start+c.length))
		if (err == nil) != c.good {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestFills(t *testing.T) {
	for _, c := range []struct {
		bits, rate uint64
		good       bool
	}{{95_000_000, 100_000_000, true}, {79_000_000, 100_000_000, false}, {1, 0, true}} {
		if err := fills(record.Trial{Throughput: &record.Throughput{BitsPerSecond: c.bits}}, c.rate); (err == nil) != c.good {
			t.Errorf("%d of %d bit/s: %v", c.bits, c.rate, err)
		}
	}
	if fills(record.Trial{}, 100_000_000) == nil {
		t.Error("an empty stream fills a bottleneck")
	}
}

func TestChainsOfTheLabsCells(t *testing.T) {
	bottleneck := experiment.Cell{
		Tool: experiment.ToolPingPong, Transport: "bridge", Runtime: chain.RuntimeRunc, Qdisc: "tbf", Rate: 100_000_000, Queue: "fq_codel", FarQueue: "pfifo", Bulk: true,
	}
	for _, c := range []struct {
		cell experiment.Cell
		want string
	}{
		{bottleneck, "qos: {qdisc: tbf, rate: 100Mbps, child: {qdisc: pfifo}}}"},
		{bottleneck, "transport: bridge, qos: {qdisc: tbf, rate: 100Mbps, child: {qdisc: fq_codel}}}"},
		{experiment.Cell{Tool: experiment.ToolCyclictest, Runtime: chain.RuntimeVM, Kernel: chain.VMKernelRT}, "vm: {kernel: rt}"},
		{experiment.Cell{Tool: experiment.ToolSpin, Runtime: chain.RuntimeVM, NoHzFull: true}, "cpus: 2, vm: {nohz_full: true}"},
		{experiment.Cell{Tool: experiment.ToolSpin, Runtime: chain.RuntimeVM}, "cpus: 2, vm: {nohz_full: false}"},
		{experiment.Cell{Tool: experiment.ToolCyclictest, Runtime: chain.RuntimeRunc, Stress: true}, "runtime: runc, command: [sleep, infinity]}"},
	} {
		text := string(chainText(host2(), c.cell))
		if _, err := chain.Parse(c.cell.String(), []byte(text)); err != nil || !strings.Contains(text, c.want) {
			t.Errorf("%s: %v: %s", c.cell, err, text)
		}
	}
	// A machine has its own kernel: it needs no lab.
	inv := host2()
	if lacks := Lacks(inv, false, experiment.Cell{Tool: experiment.ToolCyclictest, Runtime: chain.RuntimeVM, Kernel: chain.VMKernelRT}); len(lacks) != 0 {
		t.Errorf("%v", lacks)
	}
}
