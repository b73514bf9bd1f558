// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"context"
	"errors"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/drayage/dray/internal/measure/instrument"
	"github.com/drayage/dray/internal/measure/runner"
	"github.com/drayage/dray/internal/plan"
	"github.com/drayage/dray/internal/result/record"
	"github.com/drayage/dray/internal/spec/chain"
	"github.com/drayage/dray/internal/spec/units"
)

// f1 is the plan of a link with F1's requirements between two functions.
func f1() *plan.Plan {
	ratio := units.Ratio(1e-4)
	end := func(function, ip string) plan.End {
		return plan.End{Function: function, Port: "f1u", IP: netip.MustParsePrefix(ip), MTU: 1600}
	}
	return &plan.Plan{
		Chain:     "f1-split",
		Functions: []plan.Function{{Name: "cu-up", Runtime: chain.RuntimeRunc}, {Name: "du", Runtime: chain.RuntimeRunc, CPUs: []int{1}}},
		Links: []plan.Link{{
			Name: "f1u", Transport: "veth", MTU: 1600, Load: 401_600_000,
			Ends: []plan.End{end("cu-up", "10.38.0.1/24"), end("du", "10.38.0.2/24")},
			Requires: chain.Requires{Latency: units.Duration(1500 * time.Microsecond), Percentile: 99,
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

// shm is the same plan between two native ports.
func shm() *plan.Plan {
	p := f1()
	p.Links[0].Transport = "shm"
	for i := range p.Links[0].Ends {
		p.Links[0].Ends[i].Face = chain.FaceNative
	}
	return p
}

func TestMainJobTakesLessThanAMinute(t *testing.T) {
	if d := Estimate(f1(), Options{}); d < 20*time.Second || d > 60*time.Second {
		t.Errorf("the main job is estimated at %v", d)
	}
	quick, thorough := Estimate(f1(), Options{Profile: Quick}), Estimate(f1(), Options{Profile: Thorough})
	if quick > 18*time.Second || thorough < 2*time.Minute {
		t.Errorf("quick %v, thorough %v", quick, thorough)
	}
	if one, ten := Estimate(f1(), Options{Rounds: 1}), Estimate(f1(), Options{Rounds: 10}); ten < 2*one {
		t.Errorf("one round %v, ten rounds %v", one, ten)
	}
	if d := Estimate(&plan.Plan{}, Options{}); d != 0 {
		t.Errorf("a plan without links takes %v", d)
	}
}

func TestEachRequirementGetsTrialsInBothDirections(t *testing.T) {
	ms := matrix(f1(), Options{})
	if len(ms) != 12 {
		t.Errorf("%d measurements, want 5 in each direction and two of round trips", len(ms))
	}
	ids := map[string]bool{}
	for _, m := range ms {
		ids[m.id()] = true
	}
	if len(ids) != len(ms) {
		t.Errorf("%d measurements have %d ids", len(ms), len(ids))
	}
	for _, from := range []string{"cu-up", "du"} {
		s := find(t, ms, record.QStream, from)
		if s.params.Bitrate != 401_600_000 || s.rounds != 10 || !s.noWarmup || s.crossCheck || s.busy != [2]int{0, 0} {
			t.Errorf("stream %+v", s)
		}
		if packets := s.params.Duration.Seconds() * float64(s.rounds) * float64(s.params.Bitrate) / packetBits(s.link); packets < 3/1e-4 {
			t.Errorf("stream: %+v makes %.0f packets in all", s.params, packets)
		}
		if th := find(t, ms, record.QThroughput, from); th.rounds != 10 || !th.noWarmup || th.crossCheck || th.tool.Name() != "draygen" {
			t.Errorf("throughput %+v", th)
		}
		if m := find(t, ms, record.QPathMTU, from); m.params.MTU != 1600 || m.rounds != 1 || m.crossCheck {
			t.Errorf("MTU %+v", m)
		}
		if d := find(t, ms, record.QDelivery, from); d.rounds != 1 || !d.crossCheck || d.tool.Name() != "iperf" {
			t.Errorf("cross-check of loss %+v", d)
		}
	}
	for _, q := range []record.Quantity{record.QLatency, record.QRequests} {
		if m := find(t, ms, q, "cu-up"); m.rounds != 1 || !m.crossCheck {
			t.Errorf("%s %+v", q, m)
		}
	}
	if l := find(t, ms, record.QLatency, "cu-up"); l.params.Load != 401_600_000 {
		t.Errorf("round trips under %d bit/s", l.params.Load)
	}
}

// The link's traffic is judged, and TCP shown next to datagrams.
func TestTrafficIsTheLinks(t *testing.T) {
	by := func(traffic chain.Traffic, o Options) (judged, beside []string) {
		p := f1()
		p.Links[0].Traffic = traffic
		for _, m := range matrix(p, o) {
			switch {
			case m.quantity != record.QThroughput || m.from.Function != "du":
			case m.crossCheck:
				beside = append(beside, m.tool.Name())
			default:
				judged = append(judged, m.tool.Name())
			}
		}
		return judged, beside
	}
	for _, c := range []struct {
		traffic        chain.Traffic
		options        Options
		judged, beside []string
	}{
		{chain.TrafficUDP, Options{}, []string{"draygen"}, []string{"iperf3"}},
		{chain.TrafficTCP, Options{}, []string{"iperf3"}, nil},
		{chain.TrafficUDP, Options{Profile: Quick}, []string{"draygen"}, nil},
		{chain.TrafficUDP, Options{EveryTraffic: true}, []string{"draygen", "iperf3"}, nil},
	} {
		if judged, beside := by(c.traffic, c.options); !slices.Equal(judged, c.judged) || !slices.Equal(beside, c.beside) {
			t.Errorf("%s, %+v: %q are judged, and %q only shown", c.traffic, c.options, judged, beside)
		}
	}
}

// The link's frame size applies to its streams and sizes their rounds.
func TestFramesAreTheLinks(t *testing.T) {
	p := f1()
	p.Links[0].Load = 20_000_000
	whole := streamParams(p.Links[0], Options{})
	p.Links[0].Frame = 518
	short := streamParams(p.Links[0], Options{})
	if short.Frame != 514 || short.Duration >= whole.Duration || packetBits(p.Links[0]) != 8*472 {
		t.Errorf("streams %+v and %+v", whole, short)
	}
	if m := find(t, matrix(p, Options{}), record.QThroughput, "du"); m.params.Frame != 514 {
		t.Errorf("throughput %+v", m.params)
	}
}

func TestLinkWithoutRequirementsGetsOneRound(t *testing.T) {
	p := f1()
	p.Links[0].Requires, p.Links[0].Load = chain.Requires{}, 0
	ms := matrix(p, Options{})
	if len(ms) != 8 {
		t.Errorf("%d measurements, want three in each direction and two of round trips", len(ms))
	}
	for _, m := range ms {
		if m.rounds != 1 || m.params.Load != 0 || m.quantity == record.QStream {
			t.Errorf("%+v", m)
		}
	}
}

// sixF1 is the same plan with IPv6 addresses.
func sixF1() *plan.Plan {
	p := f1()
	p.Links[0].Ends[0].IP, p.Links[0].Ends[1].IP = netip.MustParsePrefix("fd38::1/64"), netip.MustParsePrefix("fd38::2/64")
	return p
}

// Judgement does not depend on the family; sockperf has no IPv6.
func TestIPv6IsMeasuredAlike(t *testing.T) {
	p, four := sixF1(), f1()
	p.Links[0].Requires.PacketRate, four.Links[0].Requires.PacketRate = 1000, 1000
	ids := map[string]bool{}
	for _, m := range matrix(p, Options{}) {
		ids[m.id()] = true
	}
	for _, m := range matrix(four, Options{}) {
		if want := m.tool.Name() != "sockperf"; ids[m.id()] != want {
			t.Errorf("%s over IPv6: %v", m.id(), ids[m.id()])
		}
	}
}

// Only draygen can measure a port that is no interface.
func TestNativePortsAreMeasuredByDraygen(t *testing.T) {
	p := shm()
	p.Links[0].Requires.PacketRate = 1000
	ms := matrix(p, Options{})
	if len(ms) != 8 {
		t.Errorf("%d measurements, want stream, throughput, packet rate and MTU in each direction", len(ms))
	}
	for _, m := range ms {
		if m.tool.Name() != "draygen" || m.crossCheck {
			t.Errorf("%s by %s", m.quantity, m.tool.Name())
		}
	}
	p.Functions[0].CPUs = []int{0}
	if s := find(t, matrix(p, Options{}), record.QStream, "du"); s.busy != [2]int{0, 1} || !s.params.Poll {
		t.Errorf("busy threads %v: the sink polls", s.busy)
	}
	p.Functions[0].CPUs = p.Functions[1].CPUs
	if s := find(t, matrix(p, Options{}), record.QStream, "du"); s.busy != [2]int{0, 0} || s.params.Poll {
		t.Errorf("busy threads %v: a sink polls on its sender's only CPU", s.busy)
	}
}

// A receiver at a dpdk port polls, even on its sender's only CPU; and EAL starts
// slowly.
// TestFarPortsAreMeasuredByDraygen: other instruments are not there but for iperf3, which judges a bitrate of TCP.
func TestFarPortsAreMeasuredByDraygen(t *testing.T) {
	for name, p := range map[string]*plan.Plan{"interfaces": f1(), "native": shm()} {
		ms := matrix(p, Options{Far: true})
		for _, m := range ms {
			if m.tool.Name() != "draygen" || m.crossCheck {
				t.Errorf("%s: %s by %s", name, m.id(), m.tool.Name())
			}
		}
		for _, q := range []record.Quantity{record.QStream, record.QThroughput, record.QPathMTU} {
			if m := find(t, ms, q, "du"); m.overhead < farStarts {
				t.Errorf("%s: %s has an overhead of %v", name, q, m.overhead)
			}
		}
	}
	p := f1()
	p.Links[0].Traffic = chain.TrafficTCP
	for _, m := range matrix(p, Options{Far: true}) {
		if m.quantity == record.QThroughput && (m.tool.Name() != "iperf3" || m.crossCheck) {
			t.Errorf("%s by %s", m.id(), m.tool.Name())
		}
	}
	find(t, matrix(p, Options{Far: true}), record.QThroughput, "du")
}

// TestTrialHasItsSendersEnvironment if ports are on several machines, also if it fails.
func TestTrialHasItsSendersEnvironment(t *testing.T) {
	in := Input{
		Plan: f1(), Far: func(plan.End) (instrument.Endpoint, error) { return instrument.Endpoint{}, errors.New("gone") },
		EnvOf: func(e plan.End) record.Environment { return record.Environment{Kernel: "of " + e.Function} },
	}
	for _, m := range matrix(in.Plan, Options{Far: true}) {
		if trial, err := in.run(context.Background(), m, runner.Round{}); err == nil || trial.Env.Kernel != "of "+m.from.Function {
			t.Errorf("%s: %v, %+v", m.id(), err, trial.Env)
		}
	}
}

func TestReceiversPollOnDevices(t *testing.T) {
	p := shm()
	p.Links[0].Ends[1].Face = chain.FaceDPDK
	p.Functions[0].CPUs = p.Functions[1].CPUs
	ms := matrix(p, Options{})
	to, from := p.Links[0].Ends[1].Function, p.Links[0].Ends[0].Function
	if s := find(t, ms, record.QStream, from); s.to.Function != to || s.busy != [2]int{0, 1} {
		t.Errorf("busy threads %v of a sender and the sink on a device", s.busy)
	}
	if s := find(t, ms, record.QStream, to); s.busy != [2]int{0, 0} {
		t.Errorf("busy threads %v of a sender on a device and a sink that sleeps", s.busy)
	}
	native := find(t, matrix(shm(), Options{}), record.QStream, from).overhead
	if s := find(t, ms, record.QStream, from); s.overhead != native+ealStarts {
		t.Errorf("overhead %v", s.overhead)
	}
}

// Without a load, delay is read from probes, and loss from a separate stream.
func TestIdleLinkIsProbed(t *testing.T) {
	p := f1()
	p.Links[0].Load = 0
	ms := matrix(p, Options{})
	probe := find(t, ms, record.QProbe, "du")
	if probe.rounds != 10 || probe.params.MessageRate != lowProbeRate || find(t, ms, record.QStream, "du").rounds != 10 {
		t.Errorf("probe %+v", probe)
	}
	p.Links[0].Requires.LossRatio = nil
	if slices.ContainsFunc(matrix(p, Options{}), func(m measurement) bool { return m.quantity == record.QStream }) {
		t.Error("an idle link that may lose anything is loaded")
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
		percentile units.Percentile
		least      float64
	}{{50, 20}, {99, 1000}, {99.9, 10_000}, {99.99, 100_000}} {
		p := f1()
		p.Links[0].Requires.Percentile = c.percentile
		stream := streamParams(p.Links[0], Options{})
		if n := 10 * stream.Duration.Seconds() * float64(stream.Bitrate) / packetBits(p.Links[0]); n < 2.9*c.least || stream.Duration > 10*time.Second {
			t.Errorf("p%g: %.0f packets in trials of %v; the least is %.0f", c.percentile, n, stream.Duration, c.least)
		}
		p.Links[0].Load = 0
		probe := probeParams(p.Links[0], Options{})
		if n := 10 * probe.Duration.Seconds() * float64(probe.MessageRate); n < 2.9*c.least || probe.Duration > 10*time.Second {
			t.Errorf("p%g: %.0f probes in trials of %v; the least is %.0f", c.percentile, n, probe.Duration, c.least)
		}
	}
}

func TestLossTrialsAreBounded(t *testing.T) {
	p := f1()
	tiny := units.Ratio(1e-9)
	p.Links[0].Requires.LossRatio = &tiny
	if d := streamParams(p.Links[0], Options{}).Duration; d != 10*time.Second {
		t.Errorf("a ratio of 1e-9 takes trials of %v", d)
	}
	p.Links[0].Load = 0
	if b := streamParams(p.Links[0], Options{}).Bitrate; b != 4_016_000_000 {
		t.Errorf("without load %d bit/s are offered, want min_bitrate", b)
	}
	p.Links[0].Requires.MinBitrate = 0
	if b := streamParams(p.Links[0], Options{}).Bitrate; b != probeBitrate {
		t.Errorf("without load and bitrate %d bit/s are offered", b)
	}
}

// A fronthaul is the load of the one stream from which on_time is judged.
func TestFronthaulIsTheLoad(t *testing.T) {
	p := f1()
	l := &p.Links[0]
	l.Fronthaul = &chain.Fronthaul{SCS: 30, PRB: 51, Layers: 1, VLAN: 1, T1aCP: chain.Window{1000, 2000}, T1aUP: chain.Window{1000, 2000}, T2aCP: chain.Window{1000, 2000}, T2aUP: chain.Window{1000, 2000}}
	l.Load, l.Requires = l.Fronthaul.Bitrate(), chain.Requires{OnTime: 0.99999}
	ms := matrix(p, Options{})
	m := find(t, ms, record.QStream, "cu-up")
	if f := m.params.Slots; f != chain.SlotLoad(l.Fronthaul) || f.PacketRate() != 30_000 || m.params.Bitrate != uint64(l.Load) {
		t.Errorf("%+v", m.params)
	}
	if packets := 30_000 * m.params.Duration.Seconds() * float64(m.rounds); packets < 300_000 {
		t.Errorf("%.0f messages cannot prove 99.999 %%", packets)
	}
	if got := find(t, ms, record.QLatency, "cu-up").params.Load; got != 0 {
		t.Errorf("round trips are measured under %d bit/s of other traffic", got)
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
	m := find(t, ms, record.QStream, "cu-up")
	p := runner.Progress{Item: items([]measurement{m}, nil)[0], Round: runner.Round{Number: 1}, Rounds: 5, Left: 14200 * time.Millisecond}
	if got, want := p.String(), "link f1u: stream cu-up → du, round 2 of 5, 14 s left"; got != want {
		t.Errorf("%q; want %q", got, want)
	}
	p.Turn, p.Turns, p.AtMost = 3, 12, 3*time.Minute
	if got, want := p.String(), "link f1u: stream cu-up → du, round 2 of 5, 3 of 12 in it, 14 s left of at most 180"; got != want {
		t.Errorf("%q; want %q", got, want)
	}
	p.Round.Warmup = true
	if got := p.String(); !strings.Contains(got, ", warm-up,") {
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
