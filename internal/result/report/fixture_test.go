// SPDX-License-Identifier: Apache-2.0

package report

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/drayage/dray/internal/plan"
	"github.com/drayage/dray/internal/result/record"
	"github.com/drayage/dray/internal/spec/chain"
	"github.com/drayage/dray/internal/spec/inventory"
	"github.com/drayage/dray/internal/spec/units"
	"github.com/drayage/dray/test/testenv"
)

// fixture makes run directories of synthetic records for these tests only.
type fixture struct {
	run    Run
	plan   plan.Plan
	trials []record.Trial
	rng    *rand.Rand
}

const chainText = "apiVersion: drayage/v1\nkind: Chain\nname: f1-split\n"

// start is a fixed time, so that golden files do not change.
var start = time.Date(2026, 3, 4, 9, 30, 0, 0, time.UTC)

func ptr[T any](v T) *T { return &v }

// newFixture is a DU and a CU-UP joined by one link, without measurements.
func newFixture() *fixture {
	f := &fixture{rng: rand.New(rand.NewPCG(1, 2))}
	f.run = Run{
		Schema: Schema, ID: "20260304-093000-7f3a", Chain: "f1-split", Started: start, Finished: start.Add(104 * time.Second),
		Dray: "v0.1.0", Seed: 20260304,
		Phases: []Phase{{"plan", 14 * time.Millisecond}, {"up", 410 * time.Millisecond}, {"verify", 98 * time.Second}, {"report", 300 * time.Millisecond}, {"down", 190 * time.Millisecond}},
		Functions: []Function{
			{Name: "cu-up", Runtime: "runc", CPUs: []int{0}, Outcome: "stopped by dray after verify"},
			{Name: "du", Runtime: "runc", CPUs: []int{1}, Outcome: "stopped by dray after verify"},
		},
		Links: []Link{{
			Name: "f1u", Transport: "veth", Ends: []string{"cu-up.f1u", "du.f1u"},
			Addresses: map[string]string{"cu-up.f1u": "10.77.0.1/30", "du.f1u": "10.77.0.2/30"},
			Qdiscs:    map[string]string{"cu-up.f1u": "noqueue", "du.f1u": "noqueue"},
		}},
	}
	f.plan = plan.Plan{
		Chain: "f1-split", Host: "dev-2core",
		Functions: []plan.Function{
			{Name: "cu-up", Runtime: "runc", Host: "dev-2core", CPUs: []int{0}, Reason: "asks for one CPU: CPU 0 is the first that is free"},
			{Name: "du", Runtime: "runc", Host: "dev-2core", CPUs: []int{1}, Reason: "asks for one CPU: CPU 1 is the next that is free"},
		},
		Links: []plan.Link{f1u()},
	}
	return f
}

func f1u() plan.Link {
	return plan.Link{
		Name: "f1u", Transport: "veth", Traffic: chain.TrafficTCP, MTU: 1500, Load: 302_400_000, Isolation: chain.IsolationNoSharedMemory,
		Reason: "veth is the fastest transport that isolation no-shared-memory and face netdev permit on one host",
		Rejected: []plan.Rejected{
			{Transport: "loopback", Reason: "never chosen by auto: both ends would share one network namespace"},
			{Transport: "bridge", Reason: "slower than veth: one more hop through a bridge"},
			{Transport: "ovs", Reason: "slower than veth: the userspace datapath copies every packet"},
		},
		Ends: []plan.End{
			{Function: "cu-up", Port: "f1u", IP: netip.MustParsePrefix("10.77.0.1/30"), MTU: 1500},
			{Function: "du", Port: "f1u", IP: netip.MustParsePrefix("10.77.0.2/30"), MTU: 1500},
		},
		Requires: chain.Requires{
			Latency: units.Duration(1500 * time.Microsecond), Percentile: 99, PDV: units.Duration(500 * time.Microsecond),
			LossRatio: ptr(units.Ratio(1e-3)), MinBitrate: 3_024_000_000, MTU: 1500,
		},
		Evidence: []plan.Evidence{
			{Requirement: "latency", Required: "1.5ms at p99", Expected: "120us", Source: "stated default", Meets: true},
			{Requirement: "min_bitrate", Required: "3.024Gbps", Expected: "8Gbps", Source: "stated default", Meets: true},
		},
	}
}

// trial appends a trial with an environment like the development machine's.
func (f *fixture) trial(link string, q record.Quantity, from, to string, round int) *record.Trial {
	n := len(f.trials)
	f.trials = append(f.trials, record.Trial{
		Schema: record.Schema, Run: f.run.ID, ID: fmt.Sprintf("t%03d", n+1), Chain: f.run.Chain, Link: link, From: from, To: to,
		Transport: "veth", Quantity: q, Instrument: record.Instrument{Name: "tool", Version: "1.0", Client: []string{"tool", "-c", to}},
		Seed: f.run.Seed, Order: n, Round: round, Start: start.Add(time.Duration(n) * 2 * time.Second), Duration: 2 * time.Second,
		Marks: []string{record.MarkGovernor}, Raw: "the tool's own output\n",
		Env: record.Environment{
			Kernel: "6.18.3", CmdLine: "root=/dev/vda ro", OS: "Debian GNU/Linux 12 (bookworm)", CPUModel: "Intel(R) Xeon(R) Processor @ 2.60GHz",
			CPUs: []int{0, 1}, Governor: "none", Virtual: "kvm", LoadBefore: 0.4, BusyDuring: 0.7, Stolen: 0.003,
			Pinning:  map[string][]int{"cu-up": {0}, "du": {1}},
			Offloads: map[string]string{"cu-up.f1u": "tso on, gro off, tx-checksum on", "du.f1u": "tso on, gro off, tx-checksum on"},
			Engines:  map[string]string{"iperf3": "3.12", "runc": "1.1.5", "sockperf": "3.7"},
		},
	})
	return &f.trials[n]
}

// times draws lognormal times around a median, with a share of slow ones.
func (f *fixture) times(median time.Duration, slow float64, samples int) (record.Histogram, time.Duration) {
	hdr := record.NewHDR()
	least := int64(math.MaxInt64)
	for range samples {
		v := float64(median) * math.Exp(0.18*f.rng.NormFloat64())
		if f.rng.Float64() < slow {
			v *= 2 + 8*f.rng.ExpFloat64()
		}
		least = min(least, int64(v))
		_ = hdr.RecordValue(min(int64(v), record.HistogramHighest))
	}
	return record.FromHDR(hdr), time.Duration(least)
}

// stream adds a stream's trial: its delays, its loss, and a slightly late generator.
func (f *fixture) stream(t *record.Trial, load uint64, median time.Duration, slow float64, samples int, lost uint64) {
	f.delivery(t, load, uint64(samples)+lost, lost)
	h, least := f.times(median, slow, samples)
	late, _ := f.times(55*time.Microsecond, 0.01, samples)
	t.Instrument = record.Instrument{Name: "draygen", Version: "1.0", Client: []string{"draygen", "send"}, Server: []string{"draygen", "sink"}}
	t.OneWay = &record.OneWay{Latency: h, Intended: h, Lateness: late, IPDV: record.Histogram{Bits: 6, Counts: []record.BucketCount{}}, Min: least, Max: 2 * time.Second}
}

// pingPong adds a cross-check of delays.
func (f *fixture) pingPong(t *record.Trial, load uint64, median time.Duration, samples int) {
	h, least := f.times(median, 0.002, samples)
	t.Load = &record.Load{Offered: load, Achieved: load}
	t.Latency = &record.Latency{Histogram: h, Sent: uint64(samples), Rate: uint64(samples / 2), MinRTT: least}
	t.Instrument.Name, t.CrossCheck = "sockperf", true
}

func (f *fixture) delivery(t *record.Trial, load, sent, lost uint64) {
	t.Delivery = &record.Delivery{
		OfferedBits: load, SentBits: load, ReceivedBits: load - load*lost/sent, DatagramBytes: 1472, FrameBytes: 1518,
		Sent: sent, Received: sent - lost, Lost: lost, Jitter: 9 * time.Microsecond,
		OfferedRate: sent / 2, SentRate: sent / 2, PacketRate: (sent - lost) / 2,
	}
}

// measure adds the whole matrix of one link between two ends.
func (f *fixture) measure(l plan.Link, a, b string, goodput float64, median time.Duration, slow float64, lost uint64) {
	for _, way := range [][2]string{{a, b}, {b, a}} {
		warm := f.trial(l.Name, record.QThroughput, way[0], way[1], 0)
		warm.Warmup, warm.Throughput = true, &record.Throughput{Traffic: "tcp", BitsPerSecond: uint64(goodput / 2)}
		for round := range 5 {
			t := f.trial(l.Name, record.QThroughput, way[0], way[1], round)
			t.Throughput = &record.Throughput{Traffic: "tcp", BitsPerSecond: uint64(goodput * (1 + 0.03*f.rng.NormFloat64()))}
			f.stream(f.trial(l.Name, record.QStream, way[0], way[1], round), uint64(l.Load), median, slow, 8000, lost)
		}
		if way[0] == a {
			f.pingPong(f.trial(l.Name, record.QLatency, a, b, 0), uint64(l.Load), 2*median, 1000)
		}
		t := f.trial(l.Name, record.QPathMTU, way[0], way[1], 0)
		t.PathMTU = &record.PathMTU{Wanted: l.MTU, Passed: true, Largest: l.MTU}
	}
}

// measured is made once: drawing its samples is slow.
var measured = sync.OnceValue(func() *fixture {
	f := newFixture()
	f.measure(f.plan.Links[0], "cu-up.f1u", "du.f1u", 11.2e9, 62*time.Microsecond, 0.002, 0)
	return f
})

// good is a run that meets every requirement.
func good() *fixture {
	f := newFixture()
	f.trials = slices.Clone(measured().trials)
	return f
}

func linkN3() plan.Link {
	return plan.Link{
		Name: "n3", Transport: "veth", Traffic: chain.TrafficTCP, Reason: "veth was asked for", MTU: 1544, Load: 400_000_000, Isolation: chain.IsolationNoSharedMemory,
		Ends:     []plan.End{{Function: "cu-up", Port: "n3", MTU: 1544}, {Function: "upf", Port: "n3", MTU: 1544}},
		Requires: chain.Requires{MinBitrate: 4_000_000_000, Latency: units.Duration(250 * time.Microsecond), Percentile: 99.9, LossRatio: ptr(units.Ratio(1e-6))},
	}
}

var measuredTrials = sync.OnceValue(func() []record.Trial {
	f := good()
	// One trial whose receiver was too slow for a moment.
	slow := slices.IndexFunc(f.trials, func(t record.Trial) bool { return t.Delivery != nil })
	f.trials[slow].Delivery = ptr(*f.trials[slow].Delivery)
	d := f.trials[slow].Delivery
	d.Lost, d.ReceiverDrops, d.Received = 7, 7, d.Sent-7
	f.measure(linkN3(), "cu-up.n3", "upf.n3", 1.9e9, 210*time.Microsecond, 0.02, 3)
	failed := f.trial("oam", record.QThroughput, "cu-up.mgmt", "upf.mgmt", 0)
	failed.Error = "iperf3: unable to connect to server: Connection refused"
	return f.trials
})

// bad is a larger chain with requirements met, missed and not measurable. It has a
// switch with three ends, and an uplink.
func bad() *fixture {
	f := good()
	f.run.Chain, f.plan.Chain = "site", "site"
	f.run.ExitCode = 4
	f.plan.Functions = append(f.plan.Functions, plan.Function{Name: "upf", Runtime: "docker", Host: "dev-2core", Reason: "asks for no CPU: it may use any"})
	f.run.Functions = append(f.run.Functions, Function{Name: "upf", Runtime: "docker", Outcome: "exited 1"})
	oam := plan.Link{
		Name: "oam", Transport: "bridge", Reason: "three ends need a switch, and a bridge is the fastest here", MTU: 1500, Isolation: chain.IsolationNoSharedMemory,
		Ends:     []plan.End{{Function: "cu-up", Port: "mgmt"}, {Function: "du", Port: "mgmt"}, {Function: "upf", Port: "mgmt"}},
		Requires: chain.Requires{MinBitrate: 100_000_000},
	}
	n6 := plan.Link{
		Name: "n6", Transport: "macvlan", Reason: "one end is a host interface", MTU: 1500, Isolation: chain.IsolationNoSharedMemory,
		Ends:     []plan.End{{Function: "upf", Port: "n6"}, {Uplink: "eth0"}},
		Requires: chain.Requires{MinBitrate: 1_000_000_000},
	}
	f.plan.Links = append(f.plan.Links, oam, linkN3(), n6)
	f.trials = slices.Clone(measuredTrials())
	f.plan.Warnings = []string{"link n3: latency ≤ 250us at p99.9 has no evidence; on_infeasible is warn"}
	return f
}

// dir writes the run directory.
func (f *fixture) dir(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for name, v := range map[string]any{RunFile: f.run, PlanFile: f.plan, InventoryFile: inventory.Inventory{Host: inventory.Host{MemoryTotal: 8 << 30, Cgroup: "v2", NUMANodes: 1}}} {
		b, err := json.MarshalIndent(v, "", "  ")
		testenv.Must(t, err)
		write(t, dir, name, b)
	}
	write(t, dir, ChainFile, []byte(chainText))
	w, err := record.Create(filepath.Join(dir, RecordsFile))
	testenv.Must(t, err)
	defer w.Close()
	for _, tr := range f.trials {
		testenv.Must(t, w.Write(tr))
	}
	return dir
}

func write(t *testing.T, dir, name string, b []byte) {
	t.Helper()
	testenv.Must(t, os.WriteFile(filepath.Join(dir, name), b, 0o644))
}

func (f *fixture) load(t *testing.T) *Data {
	t.Helper()
	d, err := Load(f.dir(t))
	testenv.Must(t, err)
	return d
}
