// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"context"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/drayage/dray/internal/function/runtime"
	"github.com/drayage/dray/internal/host"
	"github.com/drayage/dray/internal/measure/runner"
	"github.com/drayage/dray/internal/node"
	"github.com/drayage/dray/internal/plan"
	"github.com/drayage/dray/internal/result/record"
	"github.com/drayage/dray/internal/result/verdict"
	"github.com/drayage/dray/internal/spec/chain"
	"github.com/drayage/dray/internal/spec/inventory"
	"github.com/drayage/dray/internal/spec/units"
	"github.com/drayage/dray/test/testenv"
)

// bringUp makes a network namespace for each function of a plan with one link
// of two ends, joined by a veth pair:
//
//	cu-up: f1u 10.38.0.1 ── veth, MTU 1600 ── du: f1u 10.38.0.2
//
// or the IPv6 addresses of the plan.
func bringUp(t *testing.T, p *plan.Plan) map[string]*runtime.Sandbox {
	t.Helper()
	testenv.Root(t)
	testenv.Program(t, "iperf3", "iperf", "sockperf", "qperf", "ping", "tc", "ip")
	t.Setenv("PATH", filepath.Dir(testenv.Built(t, "draygen"))+":/usr/sbin:/usr/bin:/sbin:/bin")
	dir, err := os.MkdirTemp("/run", "dray-test-verify-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	sandboxes := map[string]*runtime.Sandbox{}
	var ifaces []host.Iface
	for i, e := range p.Links[0].Ends {
		resource := host.NamespaceResource(filepath.Join(dir, e.Function))
		t.Cleanup(func() {
			if err := host.Removers()[resource.Kind](context.Background(), resource); err != nil {
				t.Error(err)
			}
		})
		if err := host.CreateNetns(resource.Path); err != nil {
			t.Fatal(err)
		}
		ns := host.Netns{Path: resource.Path}
		sandboxes[e.Function] = &runtime.Sandbox{Netns: ns}
		ifaces = append(ifaces, host.Iface{Netns: ns, Name: e.Port, MTU: e.MTU, MAC: net.HardwareAddr{2, 0, 0, 0, 38, byte(i)}})
	}
	if err := host.CreateVeth(ifaces[0], ifaces[1]); err != nil {
		t.Fatal(err)
	}
	for _, e := range p.Links[0].Ends {
		ns := sandboxes[e.Function].Netns
		if err := ns.AddAddr(e.Port, e.IP); err != nil {
			t.Fatal(err)
		}
		if err := ns.SetUp(e.Port); err != nil {
			t.Fatal(err)
		}
	}
	for _, e := range p.Links[0].Ends {
		if err := sandboxes[e.Function].Netns.WaitCarrier(context.Background(), e.Port); err != nil {
			t.Fatal(err)
		}
	}
	return sandboxes
}

func environment(p *plan.Plan) func() record.Environment {
	live := &node.Live{State: node.State{Plan: p}}
	return func() record.Environment { return runner.Environment(&inventory.Inventory{}, live, "") }
}

func words(verdicts []verdict.Verdict) map[string]verdict.Word {
	out := map[string]verdict.Word{}
	for _, v := range verdicts {
		out[v.Requirement] = v.Verdict
	}
	return out
}

// TestQuickRunDecides makes few demands on a link, and wants a verdict on all of them
// in the shortest time. Other tests may disturb a trial and leave a demand open, so each
// may be met in any of several runs.
func TestQuickRunDecides(t *testing.T) {
	p := f1()
	l := &p.Links[0]
	ratio := units.Ratio(0.01)
	l.Load = 50_000_000
	l.Requires = chain.Requires{Latency: units.Duration(time.Second), Percentile: 90, LossRatio: &ratio, MinBitrate: 10_000_000, PacketRate: 1000, MTU: 1600}
	in := Input{Plan: p, Sandboxes: bringUp(t, p), Options: Options{Profile: Quick}, Run: "run-q", Env: environment(p)}
	if took := Estimate(p, in.Options); took > 18*time.Second {
		t.Errorf("it takes %v", took)
	}
	met := map[string]bool{}
	for end := time.Now().Add(testenv.Patient(2 * time.Minute)); time.Now().Before(end); {
		trials, err := Links(context.Background(), in)
		if err != nil {
			t.Fatal(err)
		}
		open := 0
		for _, v := range verdict.Judge(verdict.FromPlan(*l), trials) {
			met[v.Requirement] = met[v.Requirement] || v.Verdict == verdict.Met
			if !met[v.Requirement] {
				open++
				t.Logf("%s %s: %s, %s (%s)", v.Requirement, v.Required, v.Measured, v.Verdict, v.Reason)
			}
		}
		if open == 0 {
			return
		}
	}
	t.Error("every quick run left a requirement open, or missed it")
}

// TestTwoRoundsAreNotMeasurable runs every kind of trial once or twice: it works,
// but is too little to judge by.
func TestTwoRoundsAreNotMeasurable(t *testing.T) {
	p := f1()
	p.Links[0].Requires.PacketRate, p.Links[0].Load = 1000, 50_000_000
	in := Input{Plan: p, Sandboxes: bringUp(t, p), Options: Options{Rounds: 2, Duration: time.Second, Seed: 3}, Run: "run-1", Env: environment(p)}
	var progress []string
	in.Progress = func(p runner.Progress) { progress = append(progress, p.String()) }
	path := filepath.Join(t.TempDir(), "records.jsonl")
	sink, err := record.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer sink.Close()
	in.Sink = sink
	trials, err := Links(context.Background(), in)
	if err != nil {
		t.Fatal(err)
	}
	read, warnings, err := record.ReadFile(path)
	if err != nil || len(warnings) > 0 || len(read) != len(trials) || len(progress) != len(trials) {
		t.Fatalf("%d trials, %d read back, %d announced, warnings %v, error %v", len(trials), len(read), len(progress), warnings, err)
	}
	for _, trial := range read {
		testenv.Measured(t, trial.ID, trial.Error)
		if trial.Run != "run-1" || trial.Chain != "f1-split" || trial.Link != "f1u" || trial.Transport != "veth" ||
			trial.Runtimes["du.f1u"] != "runc" || trial.Env.Pinning["du"][0] != 1 || trial.Env.Kernel == "" {
			t.Errorf("%s: incomplete: %+v", trial.ID, trial)
		}
	}
	got := words(verdict.Judge(verdict.FromPlan(p.Links[0]), read))
	for _, requirement := range []string{"latency", "packet_loss_ratio", "min_bitrate", "packet_rate"} {
		if got[requirement] != verdict.NotMeasurable {
			t.Errorf("%s after two rounds: %s", requirement, got[requirement])
		}
	}
	if got["mtu"] != verdict.Met {
		t.Errorf("mtu: %s", got["mtu"])
	}
}

// TestIPv6LinkIsMeasured measures everything of a link with IPv6 addresses once:
// the verdicts' inputs exist.
func TestIPv6LinkIsMeasured(t *testing.T) {
	p := sixF1()
	l := &p.Links[0]
	l.Load, l.Requires.PacketRate = 4_000_000, 500
	in := Input{Plan: p, Sandboxes: bringUp(t, p), Options: Options{Rounds: 1, Duration: 300 * time.Millisecond}, Run: "run-6", Env: environment(p)}
	trials, err := Links(context.Background(), in)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[record.Quantity]int{}
	for _, trial := range trials {
		if !trial.CrossCheck {
			seen[trial.Quantity]++
		}
		if testenv.Measured(t, trial.ID, trial.Error); trial.Error != "" {
			continue
		}
		d := trial.Delivery
		switch trial.Quantity {
		case record.QStream:
			if d.FrameBytes != 1614+4 || d.DatagramBytes != 1600-48 || trial.OneWay.Latency.Total() == 0 {
				t.Errorf("%s: %d bytes in frames of %d, %d samples", trial.ID, d.DatagramBytes, d.FrameBytes, trial.OneWay.Latency.Total())
			}
		case record.QPacketRate:
			if d.Received == 0 {
				t.Errorf("%s: %+v", trial.ID, d)
			}
		}
	}
	for _, q := range []record.Quantity{record.QStream, record.QPacketRate, record.QThroughput, record.QPathMTU} {
		if seen[q] < 2 {
			t.Errorf("%s: %d trials, want both directions", q, seen[q])
		}
	}
}

// TestShapedLinkMisses puts tbf on the link's ends and requires more MTU than it has. Every
// requirement that the shaper breaks must be missed.
func TestShapedLinkMisses(t *testing.T) {
	p := f1()
	ratio := units.Ratio(0.01)
	l := &p.Links[0]
	l.Load = 60_000_000
	l.Shape = &chain.Qdisc{Kind: "tbf", Rate: 20_000_000}
	l.Requires = chain.Requires{Latency: 2_000_000, PDV: 1_000_000, Percentile: 90, LossRatio: &ratio, MinBitrate: 100_000_000, PacketRate: 60_000, MTU: 1700}
	in := Input{Plan: p, Sandboxes: bringUp(t, p), Options: Options{Rounds: 3}, Run: "run-2", Env: environment(p)}
	plain := in.Env
	in.Env = func() record.Environment {
		env := plain()
		env.Qdiscs = map[string]string{}
		for _, e := range l.Ends {
			env.Qdiscs[e.String()] = "tbf rate 20Mbit burst 16Kb lat 50ms"
		}
		return env
	}
	for _, s := range in.Sandboxes {
		err := s.Netns.Do(func() error {
			out, err := exec.Command("tc", "qdisc", "add", "dev", "f1u", "root", "tbf", "rate", "20mbit", "burst", "16kb", "latency", "50ms").CombinedOutput()
			if err != nil {
				t.Skipf("this kernel refuses tbf: %s", out)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	trials, err := Links(context.Background(), in)
	if err != nil {
		t.Fatal(err)
	}
	verdicts := verdict.Judge(verdict.FromPlan(*l), trials)
	for _, v := range verdicts {
		t.Logf("%s %s: %s, %s (%s)", v.Requirement, v.Required, v.Measured, v.Verdict, v.Reason)
	}
	got := words(verdicts)
	for _, requirement := range []string{"latency", "packet_delay_variation", "packet_loss_ratio", "min_bitrate", "packet_rate", "mtu"} {
		if got[requirement] != verdict.Missed {
			t.Errorf("%s: %s", requirement, got[requirement])
		}
	}
}

func TestFunctionThatDoesNotRun(t *testing.T) {
	if _, err := Links(context.Background(), Input{Plan: f1()}); err == nil || !strings.Contains(err.Error(), "cu-up is not running") {
		t.Errorf("error %v", err)
	}
}

func TestPortWithoutAddressIsARecord(t *testing.T) {
	p := f1()
	p.Links[0].Ends[0].IP = p.Links[0].Ends[0].IP.Masked()
	p.Links[0].Ends[1].IP = plan.End{}.IP
	in := Input{Plan: p, Sandboxes: map[string]*runtime.Sandbox{"cu-up": {}, "du": {}}, Options: Options{Rounds: 1},
		Env: func() record.Environment { return record.Environment{} }}
	trials, err := Links(context.Background(), in)
	if err != nil || len(trials) == 0 {
		t.Fatalf("%d trials, %v", len(trials), err)
	}
	for _, trial := range trials {
		if !strings.Contains(trial.Error, "du.f1u has no IP address") {
			t.Errorf("%s: %q", trial.ID, trial.Error)
		}
	}
}
