// SPDX-License-Identifier: Apache-2.0

package published

import (
	"errors"
	"maps"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/drayage/dray/internal/measure/rundir"
	"github.com/drayage/dray/internal/measure/runner"
	"github.com/drayage/dray/internal/result/record"
	"github.com/drayage/dray/internal/result/report"
	"github.com/drayage/dray/internal/spec/chain"
	"github.com/drayage/dray/internal/spec/experiment"
	"github.com/drayage/dray/internal/spec/inventory"
	"github.com/drayage/dray/internal/spec/units"
	"github.com/drayage/dray/test/testenv"
)

func tcp(transport string) experiment.Cell {
	return experiment.Cell{Tool: experiment.ToolTCP, Transport: transport, Runtime: chain.RuntimeRunc}
}

func two() []experiment.Experiment {
	row := func(name string, figure experiment.Figure, c experiment.Cell) experiment.Row {
		return experiment.Row{Name: name, Title: name, Figure: figure, Cell: c}
	}
	shaped := tcp("veth")
	shaped.Qdisc, shaped.Rate = "htb", 100_000_000
	return []experiment.Experiment{
		{Name: "x", Rows: []experiment.Row{row("a", "throughput", tcp("veth")), {Name: "n", Title: "n", NotRun: "no NIC"}}},
		{Name: "y", Rows: []experiment.Row{row("a", "throughput", tcp("veth")), row("b", "throughput", shaped), row("c", "throughput", tcp("sr-iov"))}},
	}
}

func host2() *inventory.Inventory {
	return &inventory.Inventory{
		Host: inventory.Host{Hostname: "h", CPUs: []int{0, 1}, NUMANodes: 1, MemoryTotal: 8 << 30, MemoryFree: 8 << 30},
		Transports: []inventory.Transport{{
			Item: inventory.Item{Name: "veth", Status: inventory.OK},
			Caps: inventory.Caps{Faces: []string{"netdev"}, Isolation: "no-shared-memory", MinEnds: 2, MaxEnds: 2, Privileges: "none"},
		}},
		Qdiscs:   []inventory.Item{{Name: "htb", Status: inventory.OK}, {Name: "sfq", Status: inventory.Missing}},
		Runtimes: []inventory.Item{{Name: "runc", Status: inventory.OK}, {Name: "vm", Status: inventory.Missing, Reason: "no qemu"}},
	}
}

func TestCellsAreMeasuredOnce(t *testing.T) {
	if cells := Cells(two()); len(cells) != 3 {
		t.Errorf("%v", cells)
	}
}

func TestSkippedSaysWhy(t *testing.T) {
	vm := experiment.Cell{Tool: experiment.ToolStart, Runtime: chain.RuntimeVM}
	_, got := Divide(host2(), Lab{}, append(Cells(two()), vm))
	if got[tcp("sr-iov").String()] != "this build has no transport sr-iov" || got[vm.String()] != "runtime vm: no qemu" || got[tcp("veth").String()] != "" {
		t.Errorf("%v", got)
	}
}

func TestNoMachinesInsideTheLab(t *testing.T) {
	inv := host2()
	inv.Runtimes[1].Status, inv.Host.CmdLine = inventory.OK, "quiet "+inventory.LabParameter
	vm := experiment.Cell{Tool: experiment.ToolStart, Runtime: chain.RuntimeVM}
	if _, got := Divide(inv, Lab{}, []experiment.Cell{vm}); !strings.HasPrefix(got[vm.String()], "nested emulation") {
		t.Errorf("%v", got)
	}
}

func TestChainsOfCellsParse(t *testing.T) {
	for _, c := range []experiment.Cell{
		tcp("bridge"), {Tool: experiment.ToolStart, Runtime: chain.RuntimeVM},
		{Tool: experiment.ToolChecks, Runtime: chain.RuntimeRunc}, {Tool: experiment.ToolDensity, Runtime: chain.RuntimeRunc, Functions: 3},
		{Tool: experiment.ToolRecovery, Runtime: chain.RuntimeProcess},
		{Tool: experiment.ToolRecovery, Transport: "shm", Runtime: chain.RuntimeRunc}, {Tool: experiment.ToolClocks, Transport: "veth", Runtime: chain.RuntimeRunc},
		{Tool: experiment.ToolUDP, Transport: "ovs", Runtime: chain.RuntimeVM, Qdisc: "tbf", Rate: 100_000_000, Load: "95Mbps"},
		{Tool: experiment.ToolRequests, Transport: "ovs", Runtime: chain.RuntimeVM, VMRuntime: chain.RuntimeRunc},
		{Tool: experiment.ToolEcho, Transport: "shm", Face: chain.FaceNative, Runtime: chain.RuntimeRunc, Qdisc: "tbf", Queue: "sfq", Rate: 100_000_000},
	} {
		if _, err := chain.Parse(c.String(), chainText(host2(), c)); err != nil {
			t.Errorf("%v:\n%s", err, chainText(host2(), c))
		}
	}
}

// TestLineBelowASwitch: a discipline of the switch without a rate leaves the line to a
// tbf at the ports; a shaper needs none.
func TestLineBelowASwitch(t *testing.T) {
	for kind, want := range map[string]struct{ link, port units.Bitrate }{"htb": {100_000_000, 0}, "hfsc": {100_000_000, 0}, "sfq": {0, 100_000_000}, "fq_codel": {0, 100_000_000}} {
		c := experiment.Cell{Tool: experiment.ToolTCP, Transport: "ovs", Runtime: chain.RuntimeRunc, Qdisc: kind, Rate: 100_000_000, At: chain.AtSwitch}
		parsed, err := chain.Parse(c.String(), chainText(host2(), c))
		testenv.Must(t, err)
		if q := parsed.Links[0].QoS; q.Kind != kind || !q.AtSwitch() || q.Rate != want.link {
			t.Errorf("%s: the link has %+v", kind, q)
		}
		for _, f := range parsed.Functions {
			if q := f.Ports[0].QoS; (q != nil) != (want.port > 0) || q != nil && (q.Kind != "tbf" || q.Rate != want.port) {
				t.Errorf("%s: the port of %s has %+v", kind, f.Name, q)
			}
		}
	}
}

// TestForwardingOfALink: every tool that measures a link lets the cell choose how its
// switch forwards.
func TestForwardingOfALink(t *testing.T) {
	for _, tool := range []experiment.Tool{experiment.ToolTCP, experiment.ToolOneWay, experiment.ToolEcho} {
		for _, f := range []chain.Forwarding{chain.ForwardingDirect, chain.ForwardingLearning, ""} {
			c := experiment.Cell{Tool: tool, Transport: "ovs-dpdk", Forwarding: f, Face: chain.FaceDPDK, Runtime: chain.RuntimeVM}
			parsed, err := chain.Parse(c.String(), chainText(host2(), c))
			testenv.Must(t, err)
			if got := parsed.Links[0].Forwarding; got != f {
				t.Errorf("%s: the link has forwarding %q", c, got)
			}
		}
	}
}

func TestLongTrials(t *testing.T) {
	c := experiment.Cell{Tool: experiment.ToolUDP, Transport: "veth", Runtime: chain.RuntimeRunc, Load: "95Mbps"}
	once := expect(c, time.Second)
	c.Times, c.Message = 10, 1470
	if lasts(c, time.Second) != 10*time.Second || expect(c, time.Second) != once+9*time.Second {
		t.Errorf("it lasts %v, expected to take %v, once %v", lasts(c, time.Second), expect(c, time.Second), once)
	}
	if run := (&report.ExperimentsRun{Trial: time.Second}); patienceFor(run, c) != patience+19*time.Second {
		t.Errorf("it may take %v", patienceFor(run, c))
	}
	if got := c.String(); got != "udp/veth/runc/95Mbps/message-1470/times-10" {
		t.Errorf("the cell is called %s", got)
	}
}

func TestContainerInAMachineIsInBothMachines(t *testing.T) {
	c := experiment.Cell{Tool: experiment.ToolRequests, Transport: "ovs-dpdk", Runtime: chain.RuntimeVM, VMRuntime: chain.RuntimeRunc}
	if got := c.String(); got != "requests/ovs-dpdk/vm/in-runc" {
		t.Errorf("the cell is called %s", got)
	}
	parsed, err := chain.Parse(c.String(), chainText(host2(), c))
	testenv.Must(t, err)
	for _, f := range parsed.Functions {
		if f.VM == nil || f.VM.Runtime != chain.RuntimeRunc {
			t.Errorf("%s: %+v", f.Name, f.VM)
		}
	}
}

func TestBothProfilesDecideClaims(t *testing.T) {
	for _, name := range []string{"quick", "paper"} {
		if p, err := FindProfile(name); err != nil || p.Rounds < 5 {
			t.Errorf("%s: %d rounds, %v", name, p.Rounds, err)
		}
	}
	if _, err := FindProfile("slow"); err == nil {
		t.Error("a profile slow exists")
	}
}

func TestResumeContinuesTheRun(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	run := &report.ExperimentsRun{Schema: report.ExperimentsSchema, ID: "x", Rounds: 5, Trial: time.Second, Experiments: two()}
	s, err := Begin(dir, run)
	testenv.Must(t, err)
	if _, err := Resume(dir); err == nil {
		t.Error("two processes write to one directory")
	}
	testenv.Must(t, s.Sink.Write(record.Trial{ID: "done", Run: "x"}))
	testenv.Must(t, s.Close())
	if _, err := Begin(dir, run); err == nil {
		t.Error("a run overwrites another")
	}
	if s, err = Resume(dir); err != nil || !s.Done["done"] || len(s.Run.Experiments) != 2 {
		t.Fatalf("%+v, %v", s, err)
	}
	s.Run.Finished = time.Now()
	testenv.Must(t, s.Save())
	testenv.Must(t, s.Close())
	if _, err := Resume(dir); !errors.Is(err, rundir.ErrFinished) {
		t.Errorf("a finished run is resumed: %v", err)
	}
}

func TestValues(t *testing.T) {
	got, err := values(record.Trial{Throughput: &record.Throughput{BitsPerSecond: 93_460_000}})
	if err != nil || got["throughput"] != 93.46 {
		t.Errorf("%v, %v", got, err)
	}
	h := record.Histogram{Bits: 10, Counts: []record.BucketCount{{Value: 500, Count: 3}, {Value: 900, Count: 1}}}
	got, err = values(record.Trial{Delivery: &record.Delivery{PacketRate: 310_000, Jitter: 2500}, OneWay: &record.OneWay{Latency: h, Max: 900}})
	if err != nil || got["packet_rate"] != 310 || got["jitter"] != 0.0025 || got["latency_mean"] != 0.6 || got["latency_max"] != 0.9 {
		t.Errorf("%v, %v", got, err)
	}
	if _, refused := got["latency_p99"]; refused {
		t.Error("four samples support no p99")
	}
	got, err = values(record.Trial{Delivery: &record.Delivery{}, OneWay: &record.OneWay{Latency: record.Histogram{Bits: 10}}})
	if _, some := got["latency_max"]; some || err != nil {
		t.Errorf("no packet has a latency: %v, %v", got, err)
	}
	if _, err := values(record.Trial{}); err == nil {
		t.Error("no result has a value")
	}
}

func TestEnergyOfAPacket(t *testing.T) {
	const why = "no counters"
	for name, test := range map[string]struct {
		cost   *record.Cost
		rate   uint64
		values map[string]float64
		why    string
	}{
		"measured":   {&record.Cost{Power: 30}, 10_000_000, map[string]float64{"power": 30, "energy_per_packet": 3}, ""},
		"no packets": {&record.Cost{Power: 30}, 0, map[string]float64{"power": 30}, ""},
		"unknown":    {&record.Cost{NoPower: why}, 10_000_000, map[string]float64{}, why},
		"no cost":    {nil, 10_000_000, map[string]float64{}, ""},
	} {
		e := &record.Experiment{Values: map[string]float64{}}
		energy(record.Trial{Delivery: &record.Delivery{PacketRate: test.rate}, Bench: &record.Bench{Cost: test.cost}}, e)
		if !maps.Equal(e.Values, test.values) || e.Why["power"] != test.why || e.Why["energy_per_packet"] != test.why {
			t.Errorf("%s: %+v", name, e)
		}
	}
}

func itemsOf(run *report.ExperimentsRun) []runner.Item {
	return (&Runner{Run: run}).loop().Items(runner.Round{}, nil)
}

// The shortest cell that claims compare is measured twice in each round.
func TestTheShortestComparedCellIsMeasuredAgain(t *testing.T) {
	frames := experiment.Cell{Tool: experiment.ToolFrames, Transport: "vhost-user", Face: chain.FaceDPDK, Runtime: chain.RuntimeRunc, Load: "max"}
	echo := experiment.Cell{Tool: experiment.ToolEcho, Transport: "ovs-dpdk", Face: chain.FaceDPDK, Runtime: chain.RuntimeRunc}
	start := experiment.Cell{Tool: experiment.ToolStart, Runtime: chain.RuntimeRunc}
	run := func(a, b experiment.Cell) *report.ExperimentsRun {
		return &report.ExperimentsRun{Rounds: 5, Trial: time.Second, Profile: Quick, Skipped: map[string]string{}, Experiments: []experiment.Experiment{{
			Rows: []experiment.Row{
				{Name: "a", Figure: "throughput", Cell: a}, {Name: "b", Figure: "throughput", Cell: b}, {Name: "c", Figure: "throughput", Cell: tcp("veth")},
			},
			Claims: []experiment.Claim{{Text: "t", Less: experiment.RowNames{"a"}, Than: experiment.RowNames{"b"}}},
		}}}
	}
	if c := again(run(frames, tcp("bridge"))); c == nil || *c != tcp("bridge") {
		t.Errorf("%v", c)
	}
	if c := again(run(frames, echo)); c == nil || *c != frames {
		t.Errorf("%v", c)
	}
	none := run(frames, tcp("bridge"))
	none.Experiments[0].Claims = nil
	part := run(frames, tcp("bridge"))
	part.Part = true
	skipped := run(frames, tcp("bridge"))
	skipped.Skipped[frames.String()] = "no DPDK" // then the claim is not decided
	for name, r := range map[string]*report.ExperimentsRun{"no claim": none, "a part": part, "no link": run(start, start), "skipped": skipped} {
		if c := again(r); c != nil {
			t.Errorf("%s: %v", name, c)
		}
	}
	ranked := run(frames, tcp("bridge"))
	ranked.Experiments[0].Claims = []experiment.Claim{{Text: "t", Order: []experiment.RowNames{{"a"}, {"b", "c"}}}}
	if cells := claimed(ranked); len(cells) != 3 {
		t.Errorf("a ranking compares %v", cells)
	}
	ranked.Skipped[tcp("veth").String()] = "no veth" // then the ranking is not decided
	if cells := claimed(ranked); len(cells) != 0 {
		t.Errorf("a ranking that is not decided compares %v", cells)
	}
	// A claim's cells keep their time if the run's is limited.
	for _, item := range itemsOf(run(frames, tcp("bridge"))) {
		if compared := item.ID != tcp("veth").String(); item.Reserved != compared || item.Twice != (item.ID == tcp("bridge").String()) {
			t.Errorf("%+v", item)
		}
	}
	for _, item := range itemsOf(skipped) {
		if item.Reserved {
			t.Errorf("%s is reserved for a claim that cannot be decided", item.ID)
		}
	}
	once, twice := run(frames, tcp("bridge")), none
	if more := Estimate(once) - Estimate(twice); more != 5*expectIn(once, tcp("bridge")) {
		t.Errorf("it is estimated to take %v more", more)
	}
	item := runner.Item{ID: tcp("bridge").String()}
	first := &runner.Turn{Item: item, Round: runner.Round{Number: 2}}
	second := &runner.Turn{Item: item, Round: runner.Round{Number: 2}, Again: true}
	if first.ID() != "tcp/bridge/runc-r2" || second.ID() != "tcp/bridge/runc-r2-again" || named(nil, second, tcp("bridge")).Cell != "tcp/bridge/runc"+report.Again {
		t.Errorf("%s, %s, %s", first.ID(), second.ID(), named(nil, second, tcp("bridge")).Cell)
	}
}
