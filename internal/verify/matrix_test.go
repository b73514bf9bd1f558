// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/drayage/dray/internal/chain"
	"github.com/drayage/dray/internal/inventory"
	"github.com/drayage/dray/internal/plan"
	"github.com/drayage/dray/internal/record"
	"github.com/drayage/dray/internal/trial"
)

// f1 is the plan of a link with F1's requirements between two functions.
func f1() *plan.Plan {
	ratio := chain.Ratio(1e-4)
	end := func(function, ip string) plan.End {
		return plan.End{Function: function, Port: "f1u", IP: netip.MustParsePrefix(ip), MTU: 1600}
	}
	return &plan.Plan{
		Chain:     "f1-split",
		Functions: []plan.Function{{Name: "cu-up", Runtime: chain.RuntimeRunc}, {Name: "du", Runtime: chain.RuntimeRunc, CPUs: []int{1}}},
		Links: []plan.Link{{
			Name: "f1u", Transport: "veth", MTU: 1600, Load: 401_600_000,
			Ends: []plan.End{end("cu-up", "10.38.0.1/24"), end("du", "10.38.0.2/24")},
			Requires: chain.Requires{Latency: chain.Duration(1500 * time.Microsecond), Percentile: 99,
				LossRatio: &ratio, MinBitrate: 4_016_000_000, MTU: 1600},
		}},
	}
}

func find(t *testing.T, ms []measurement, q record.Quantity, from string) measurement {
	t.Helper()
	i := slices.IndexFunc(ms, func(m measurement) bool { return m.quantity == q && m.from.Function == from })
	if i < 0 {
		t.Fatalf("no %s from %s", q, from)
	}
	return ms[i]
}

func TestMainJobTakesAboutAMinute(t *testing.T) {
	if d := Estimate(f1(), Options{}); d < 30*time.Second || d > 75*time.Second {
		t.Errorf("the main job is estimated at %v", d)
	}
	quick, thorough := Estimate(f1(), Options{Profile: Quick}), Estimate(f1(), Options{Profile: Thorough})
	if quick > 35*time.Second || thorough < 2*time.Minute {
		t.Errorf("quick %v, thorough %v", quick, thorough)
	}
	if one, ten := Estimate(f1(), Options{Rounds: 1}), Estimate(f1(), Options{Rounds: 10}); ten < 4*one {
		t.Errorf("one round %v, ten rounds %v", one, ten)
	}
	if d := Estimate(&plan.Plan{}, Options{}); d != 0 {
		t.Errorf("no links take %v", d)
	}
}

func TestEachRequirementGetsTrialsInBothDirections(t *testing.T) {
	ms := matrix(f1(), Options{})
	if len(ms) != 10 {
		t.Errorf("%d measurements, want 5 in each direction", len(ms))
	}
	for _, from := range []string{"cu-up", "du"} {
		l := find(t, ms, record.QLatency, from)
		if l.params.Load != 401_600_000 || l.rounds != 0 || !l.noWarmup || l.threads != 2 {
			t.Errorf("latency %+v", l)
		}
		d := find(t, ms, record.QDelivery, from)
		packets := d.params.Duration.Seconds() * 5 * float64(d.params.Bitrate) / packetBits(d.link)
		if d.params.Bitrate != 401_600_000 || packets < 3/1e-4 {
			t.Errorf("loss: %+v makes %.0f packets in all", d.params, packets)
		}
		if th := find(t, ms, record.QThroughput, from); th.rounds != 0 || th.noWarmup {
			t.Errorf("throughput %+v", th)
		}
		if m := find(t, ms, record.QPathMTU, from); m.params.MTU != 1600 || m.rounds != 1 {
			t.Errorf("MTU %+v", m)
		}
		if r := find(t, ms, record.QRequests, from); r.rounds != 1 {
			t.Errorf("requests %+v", r)
		}
	}
}

func TestLinkWithoutRequirementsGetsCrossChecks(t *testing.T) {
	p := f1()
	p.Links[0].Requires = chain.Requires{}
	ms := matrix(p, Options{})
	if len(ms) != 8 {
		t.Errorf("%d measurements, want four in each direction", len(ms))
	}
	for _, m := range ms {
		if m.rounds != 1 || m.params.Load != 0 {
			t.Errorf("%+v", m)
		}
	}
}

func TestEveryPairOfPortsIsMeasured(t *testing.T) {
	p := f1()
	p.Links[0].Ends = append(p.Links[0].Ends, plan.End{Function: "ru", Port: "f1u"}, plan.End{Uplink: "eth0"})
	directions := map[string]bool{}
	for _, m := range matrix(p, Options{}) {
		directions[m.from.String()+">"+m.to.String()] = true
		if m.from.Uplink != "" || m.to.Uplink != "" {
			t.Errorf("an uplink is measured: %+v", m)
		}
	}
	if len(directions) != 6 {
		t.Errorf("directions %v; want the six between three ports", directions)
	}
}

func TestSamplesSupportThePercentile(t *testing.T) {
	for _, c := range []struct {
		percentile chain.Percentile
		least      float64
	}{{50, 20}, {99, 1000}, {99.9, 10_000}, {99.99, 100_000}} {
		p := f1()
		p.Links[0].Requires.Percentile = c.percentile
		params := latencyParams(p.Links[0], Options{})
		samples := 5 * (params.Duration.Seconds() - 0.45) * float64(params.MessageRate)
		if samples < 0.9*c.least || params.Duration > 10*time.Second {
			t.Errorf("p%g: %.0f samples in trials of %v; the least is %.0f", c.percentile, samples, params.Duration, c.least)
		}
	}
}

func TestLossTrialsAreBounded(t *testing.T) {
	p := f1()
	tiny := chain.Ratio(1e-9)
	p.Links[0].Requires.LossRatio = &tiny
	if d := deliveryParams(p.Links[0], Options{}).Duration; d != 10*time.Second {
		t.Errorf("a ratio of 1e-9 takes trials of %v", d)
	}
	p.Links[0].Load = 0
	if b := deliveryParams(p.Links[0], Options{}).Bitrate; b != 4_016_000_000 {
		t.Errorf("without load %d bit/s are offered, want min_bitrate", b)
	}
	p.Links[0].Requires.MinBitrate = 0
	if b := deliveryParams(p.Links[0], Options{}).Bitrate; b != probeBitrate {
		t.Errorf("without load and bitrate %d bit/s are offered", b)
	}
}

func TestDurationIsTaken(t *testing.T) {
	p := f1()
	p.Links[0].Requires.PacketRate = 1000
	for _, m := range matrix(p, Options{Duration: 7 * time.Second}) {
		if m.quantity != record.QPathMTU && m.params.Duration != 7*time.Second {
			t.Errorf("%s takes %v", m.quantity, m.params.Duration)
		}
	}
	if r := find(t, matrix(p, Options{}), record.QPacketRate, "du").params.PacketRate; r != 1100 {
		t.Errorf("%d packets/s are offered for a rate of 1000", r)
	}
}

func TestText(t *testing.T) {
	ms := matrix(f1(), Options{})
	m := find(t, ms, record.QLatency, "cu-up")
	p := trial.Progress{Cell: trial.Cell{ID: m.id()}, Round: trial.Round{Number: 1}, Rounds: 5, Left: 14200 * time.Millisecond}
	if got, want := text(ms, p), "link f1u: latency cu-up → du, round 2 of 5, 14 s left"; got != want {
		t.Errorf("%q; want %q", got, want)
	}
	p.Round.Warmup = true
	if got := text(ms, p); !strings.Contains(got, ", warm-up,") {
		t.Errorf("%q", got)
	}
}

func TestParseProfile(t *testing.T) {
	for in, want := range map[string]Profile{"": Standard, "quick": Quick, "standard": Standard, "thorough": Thorough} {
		if got, err := ParseProfile(in); got != want || err != nil {
			t.Errorf("%q: %q, %v", in, got, err)
		}
	}
	if _, err := ParseProfile("fast"); err == nil || !strings.Contains(err.Error(), "quick") {
		t.Errorf("error %v", err)
	}
}

func TestEnvironment(t *testing.T) {
	env := Environment(inventory.Host{Kernel: "6.1", CPUs: []int{0, 1}, Governor: "none", Load1: 0.5,
		HugePages: []inventory.HugePg{{Size: 2 << 20, Total: 512}, {Size: 1 << 30, Total: 2}, {Size: 64 << 10, Total: 1}}})
	if env.Kernel != "6.1" || len(env.CPUs) != 2 || env.LoadBefore != 0.5 || env.HugePages["2Mi"] != 512 || env.HugePages["1Gi"] != 2 || env.HugePages["64Ki"] != 1 {
		t.Errorf("%+v", env)
	}
}
