// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/drayage/dray/internal/spec/chain"
	"github.com/drayage/dray/internal/spec/inventory"
	"github.com/drayage/dray/internal/spec/units"
)

// Every kind of requirement is refused if the evidence contradicts it, and accepted if
// the evidence supports it.
func TestEachRequirementCanBeViolated(t *testing.T) {
	type edit func(*chain.Link)
	for _, test := range []struct {
		requirement string
		good, bad   edit
	}{
		{"latency",
			func(l *chain.Link) {
				l.Requires.Latency, l.Requires.Percentile = units.Duration(200*time.Microsecond), 99
			},
			func(l *chain.Link) {
				l.Requires.Latency, l.Requires.Percentile = units.Duration(199*time.Microsecond), 99
			}},
		{"latency",
			func(l *chain.Link) { l.Requires.Latency, l.Requires.Percentile = units.Duration(time.Second), 99.99 },
			func(l *chain.Link) { l.Requires.Latency, l.Requires.Percentile = units.Duration(time.Second), 99.999 }},
		{"packet_delay_variation",
			func(l *chain.Link) { l.Requires.PDV, l.Requires.Percentile = units.Duration(time.Millisecond), 99 },
			func(l *chain.Link) { l.Requires.PDV, l.Requires.Percentile = units.Duration(time.Microsecond), 99 }},
		{"packet_loss_ratio",
			func(l *chain.Link) { l.Requires.LossRatio = ratio(1e-4) },
			func(l *chain.Link) { l.Requires.LossRatio = ratio(1e-9) }},
		{"packet_loss_ratio",
			func(l *chain.Link) { l.Requires.LossRatio, l.Load, l.HasLoad = ratio(0.1), 990e6, true },
			func(l *chain.Link) { l.Requires.LossRatio, l.Load, l.HasLoad = ratio(0.1), 100e9, true }},
		{"on_time", onTime(0.99, 200*time.Microsecond), onTime(0.99, 199*time.Microsecond)},
		{"on_time", fapi(0.99, 200*time.Microsecond), fapi(0.99, 199*time.Microsecond)},
		{"on_time", onTime(0.9999, time.Second), onTime(0.99999, time.Second)}, // no evidence reaches so far
		{"min_bitrate",
			func(l *chain.Link) { l.Requires.MinBitrate = 900e6 },
			func(l *chain.Link) { l.Requires.MinBitrate = 900e6 + 1 }},
		{"min_bitrate",
			func(l *chain.Link) { l.Traffic, l.Requires.MinBitrate = chain.TrafficTCP, 7e9 },
			func(l *chain.Link) { l.Traffic, l.Requires.MinBitrate = chain.TrafficTCP, 7e9+1 }},
		{"min_bitrate",
			func(l *chain.Link) { l.Frame, l.Requires.MinBitrate = 782, 450e6 },
			func(l *chain.Link) { l.Frame, l.Requires.MinBitrate = 781, 450e6 }},
		{"min_bitrate",
			func(l *chain.Link) { l.Requires.MinBitrate, l.Requires.MaxBitrate = 97.2e6, 100e6 },
			func(l *chain.Link) { l.Requires.MinBitrate, l.Requires.MaxBitrate = 97.3e6, 100e6 }},
		{"min_bitrate",
			func(l *chain.Link) {
				l.Traffic, l.Requires.MinBitrate, l.Requires.MaxBitrate = chain.TrafficTCP, 95.6e6, 100e6
			},
			func(l *chain.Link) {
				l.Traffic, l.Requires.MinBitrate, l.Requires.MaxBitrate = chain.TrafficTCP, 95.7e6, 100e6
			}},
		{"packet_rate",
			func(l *chain.Link) { l.Requires.PacketRate = 100e3 },
			func(l *chain.Link) { l.Requires.PacketRate = 1e6 }},
		{"packet_rate",
			func(l *chain.Link) { l.Requires.PacketRate, l.Requires.MaxBitrate = 19e3, 10e6 },
			func(l *chain.Link) { l.Requires.PacketRate, l.Requires.MaxBitrate = 20e3, 10e6 }},
		{"max_bitrate",
			func(l *chain.Link) {
				l.Requires.MaxBitrate, l.QoS = 1e9, &chain.Qdisc{Kind: "htb", Rate: 500e6, Ceil: 1e9}
			},
			func(l *chain.Link) {
				l.Requires.MaxBitrate, l.QoS = 1e9, &chain.Qdisc{Kind: "htb", Rate: 500e6, Ceil: 2e9}
			}},
		{"max_bitrate",
			func(l *chain.Link) { l.Requires.MaxBitrate = 1e9 },
			func(l *chain.Link) { l.Requires.MaxBitrate, l.QoS = 1e9, &chain.Qdisc{Kind: "fq_codel"} }},
		{"mtu",
			func(l *chain.Link) { l.Requires.MTU = 1500 },
			func(l *chain.Link) { l.Requires.MTU = 1600 }},
	} {
		t.Run(test.requirement, func(t *testing.T) {
			inv := loadInventory(t, "vm2")
			c := pair()
			test.good(&c.Links[0])
			if p := mustPlan(t, c, inv); firstUnmet(p.Links[0].Evidence) != nil || len(p.Links[0].Evidence) == 0 {
				t.Errorf("evidence of the feasible chain: %+v", p.Links[0].Evidence)
			}
			c = pair()
			test.bad(&c.Links[0])
			v := mustViolate(t, c, inv)
			if !strings.HasPrefix(v.Constraint, test.requirement+" ") || v.Hard || v.Reason == "" || v.Fix == "" {
				t.Errorf("violation: %+v", v)
			}
			c.Policy.OnInfeasible = chain.Warn
			p := mustPlan(t, c, inv)
			if len(p.Violations) != 1 || len(p.Warnings) != 1 || p.Warnings[0] != v.String() || p.Links[0].Transport != "veth" {
				t.Errorf("under warn: transport %q, violations %v, warnings %q", p.Links[0].Transport, p.Violations, p.Warnings)
			}
		})
	}
}

// onTime loads a link with a little fronthaul, each message of which may take so long.
func onTime(share units.Ratio, transit time.Duration) func(*chain.Link) {
	w := func(least, most time.Duration) chain.Window {
		return chain.Window{units.Duration(least), units.Duration(most)}
	}
	return func(l *chain.Link) {
		sent, arrives := w(1, 1000+transit), w(1000, 2000+transit)
		l.Fronthaul = &chain.Fronthaul{SCS: 15, PRB: 51, Layers: 1, VLAN: 1, T1aCP: sent, T1aUP: sent, T2aCP: arrives, T2aUP: arrives}
		l.Requires.OnTime = share
	}
}

// fapi loads a link with few FAPI messages, each of which may take so long.
func fapi(share units.Ratio, within time.Duration) func(*chain.Link) {
	return func(l *chain.Link) {
		l.FAPI = &chain.FAPI{SCS: 15, DLTTI: 128, TXData: 128, Within: units.Duration(within)}
		l.Requires.OnTime = share
	}
}

// A load that fills a token bucket adds queueing delay and loss; a smaller load adds
// nothing.
func TestShapeAddsDelayOnlyWhereLoadFillsIt(t *testing.T) {
	inv := loadInventory(t, "vm2")
	link := func(load units.Bitrate, limit time.Duration) *chain.Chain {
		c := pair()
		l := &c.Links[0]
		l.Requires = chain.Requires{Latency: units.Duration(limit), Percentile: 99, MaxBitrate: 100e6}
		l.Load, l.HasLoad = load, true
		return c
	}
	mustPlan(t, link(90e6, time.Millisecond), inv)
	mustPlan(t, link(200e6, 21*time.Millisecond), inv)
	v := mustViolate(t, link(200e6, 20*time.Millisecond), inv)
	if !strings.Contains(v.Reason, "full queue of the tbf") {
		t.Errorf("reason: %s", v.Reason)
	}

	c := link(200e6, 21*time.Millisecond)
	c.Links[0].Requires.LossRatio = ratio(0.4)
	if v := mustViolate(t, c, inv); !strings.Contains(v.Reason, "lose 0.514 ") {
		t.Errorf("loss at twice the rate: %s", v.Reason)
	}
}

// A load that exceeds the transport's capacity leaves no evidence for latency.
func TestSaturatingLoadIsNoEvidenceForLatency(t *testing.T) {
	c := pair()
	l := &c.Links[0]
	l.Requires = chain.Requires{Latency: units.Duration(time.Second), Percentile: 99}
	l.Load, l.HasLoad = 50e9, true
	if v := mustViolate(t, c, loadInventory(t, "vm2")); !strings.Contains(v.Reason, "a load of 50Gbps fills what veth carries") {
		t.Errorf("reason: %s", v.Reason)
	}
}

// 25 µs at p99.99 through a kernel bridge is refused with and without records.
func TestFronthaulOnBridgeIsInfeasible(t *testing.T) {
	for _, name := range []string{"vm2", "server8", "calibrated"} {
		c := pair()
		c.Links[0].Transport = "bridge"
		c.Links[0].Requires = chain.Requires{Latency: units.Duration(25 * time.Microsecond), Percentile: 99.99}
		v := mustViolate(t, c, loadInventory(t, name))
		if v.Constraint != "latency ≤ 25us at p99.99" {
			t.Errorf("%s: constraint %q", name, v.Constraint)
		}
		if calibrated := strings.Contains(v.Reason, "cal.jsonl run 7 [oversubscribed]"); calibrated != (name == "calibrated") {
			t.Errorf("%s: reason %q", name, v.Reason)
		}
	}
}

// If the fastest transport lacks evidence and a slower one has it, auto takes the
// slower one and says so.
func TestAutoPrefersEvidence(t *testing.T) {
	inv := loadInventory(t, "calibrated")
	c := pair()
	c.Links[0].Traffic, c.Links[0].Requires.MinBitrate = chain.TrafficTCP, 17e9
	p := mustPlan(t, c, inv)
	if l := p.Link("ab"); l.Transport != "macvlan" {
		t.Errorf("transport %s (%s), want macvlan", l.Transport, l.Reason)
	}
	if got := rejection(p.Link("ab"), "veth"); got != "min_bitrate ≥ 17Gbps, and 15.02Gbps is expected (records/cal.jsonl run 7 [oversubscribed], 3 days old, tcp)" {
		t.Errorf("veth was not taken because %q", got)
	}
	c.Links[0].Requires.MinBitrate = 100e9
	if v := mustViolate(t, c, inv); !strings.HasPrefix(v.Reason, "veth ") {
		t.Errorf("where none has evidence, the fastest is reported: %s", v.Reason)
	}
}

func rejection(l *Link, transport string) string {
	for _, r := range l.Rejected {
		if r.Transport == transport {
			return r.Reason
		}
	}
	return ""
}

// A calibration from another machine or kernel is no evidence here.
func TestStaleCalibrationIsNoEvidence(t *testing.T) {
	inv := loadInventory(t, "calibrated")
	for i := range inv.Calibration {
		inv.Calibration[i].Stale = "it was measured under another kernel (5.10)"
	}
	if got := figuresOf(inv, "veth").latency(99); got.source != statedDefault {
		t.Errorf("%+v", got)
	}
}

func TestFigures(t *testing.T) {
	inv := loadInventory(t, "calibrated")
	const us = float64(time.Microsecond)
	for _, test := range []struct {
		what   string
		got    figure
		value  float64
		source string
	}{
		{"the latest calibration counts", figuresOf(inv, "veth").latency(99), 86 * us, "records/cal.jsonl run 7 [oversubscribed], 3 days old"},
		{"the next higher percentile counts", figuresOf(inv, "veth").latency(99.5), 210 * us, "records/cal.jsonl run 7 [oversubscribed], 3 days old"},
		{"beyond the calibration the default counts", figuresOf(inv, "macvlan").latency(99.9), 800 * us, statedDefault},
		{"beyond all evidence nothing is known", figuresOf(inv, "veth").latency(99.999), 0, ""},
		{"a bound of PDV beyond p99 is the latency", figuresOf(inv, "veth").pdv(99.9), 210 * us, "records/cal.jsonl run 7 [oversubscribed], 3 days old, by its latency"},
		{"an uncalibrated transport has its default", figuresOf(inv, "ovs").tcpBitrate(), 500e6, "stated default, tcp"},
		{"datagrams have evidence of their own", figuresOf(inv, "veth").udpBitrate(udpPayload(1518, ipv4Header)), 3004e6, "records/cal.jsonl run 7 [oversubscribed], 3 days old, udp"},
		{"as many shorter frames pass", figuresOf(inv, "veth").udpBitrate(udpPayload(782, ipv4Header)), 1502e6, "records/cal.jsonl run 7 [oversubscribed], 3 days old, udp"},
		{"longer frames are not assumed to carry more", figuresOf(inv, "veth").udpBitrate(udpPayload(9018, ipv4Header)), 3004e6, "records/cal.jsonl run 7 [oversubscribed], 3 days old, udp"},
		{"no port of shared memory has TCP", figuresOf(inv, "shm").tcpBitrate(), 0, ""},
		{"an unknown transport has nothing", figuresOf(inv, "fake").udpBitrate(udpPayload(1518, ipv4Header)), 0, ""},
	} {
		if test.got.value != test.value || test.got.source != test.source {
			t.Errorf("%s: got %v from %q, want %v from %q", test.what, test.got.value, test.got.source, test.value, test.source)
		}
	}
}

// A calibration with datagrams alone is no evidence for TCP, and vice versa.
func TestOneTrafficIsNoEvidenceForTheOther(t *testing.T) {
	for _, test := range []struct {
		traffic  chain.Traffic
		measured inventory.Calibration
	}{
		{chain.TrafficUDP, inventory.Calibration{TCPBitrate: 50e9}},
		{chain.TrafficTCP, inventory.Calibration{UDPBitrate: 50e9, UDPFrame: 1518}},
	} {
		test.measured.Transport, test.measured.Source = "veth", "records"
		inv := loadInventory(t, "vm2")
		inv.Calibration = []inventory.Calibration{test.measured}
		c := pair()
		c.Links[0].Traffic, c.Links[0].Requires.MinBitrate = test.traffic, 20e9
		c.Links[0].Load, c.Links[0].HasLoad = 0, true
		if v := mustViolate(t, c, inv); !strings.Contains(v.Reason, "stated default, "+string(test.traffic)) {
			t.Errorf("%s: %s", test.traffic, v.Reason)
		}
	}
}

// A stated default is never better than a value the calibration measured.
func TestDefaultNeverBelowCalibration(t *testing.T) {
	inv := &inventory.Inventory{Calibration: []inventory.Calibration{{
		Transport: "veth",
		Source:    "records",
		Latency:   []inventory.LatencyPoint{{Percentile: 99, Latency: time.Second}},
	}}}
	if got := figuresOf(inv, "veth").latency(99.9); got.value != float64(time.Second) || got.source != statedDefault {
		t.Errorf("got %+v", got)
	}
}

func TestStatedDefaultsAreConsistent(t *testing.T) {
	for name, d := range statedDefaults {
		if d.UDPBitrate == 0 || d.PacketRate == 0 || d.LossRatio == 0 || d.PDVp99 == 0 || len(d.Latency) == 0 {
			t.Errorf("%s: a figure is missing", name)
		}
		for i := 1; i < len(d.Latency); i++ {
			if a, b := d.Latency[i-1], d.Latency[i]; a.Percentile >= b.Percentile || a.Latency > b.Latency {
				t.Errorf("%s: latency falls from %+v to %+v", name, a, b)
			}
		}
		if d.PDVp99 > latencyAt(&d, 99) {
			t.Errorf("%s: the variation %v exceeds the latency %v", name, d.PDVp99, latencyAt(&d, 99))
		}
	}
}

// TestTightest: rates are judged by the most restrictive port.
func TestTightest(t *testing.T) {
	slow := &chain.Qdisc{Kind: "htb", Rate: 1e6}
	for name, shapes := range map[string][]*chain.Qdisc{
		"slower port":  {{Kind: "tbf", Rate: 2e6}, slow},
		"unshaped too": {{Kind: "pfifo"}, slow},
		"longer queue": {{Kind: "htb", Rate: 1e6, Child: &chain.Qdisc{Kind: "bfifo", Limit: 2000}}, slow, {Kind: "htb", Rate: 1e6, Child: &chain.Qdisc{Kind: "sfq"}}},
	} {
		if q := tightest(shapes, 1500); q != slow {
			t.Errorf("%s: %+v", name, q)
		}
	}
	if q := tightest(nil, 1500); q != nil {
		t.Errorf("of none: %+v", q)
	}
}

// TestPortShape: a port's own qdisc appears completed in the plan; other ports use the
// link's.
func TestPortShape(t *testing.T) {
	c := pair()
	c.Functions[1].Ports[0].QoS = &chain.Qdisc{Kind: "htb", Rate: 4e6, Child: &chain.Qdisc{Kind: "pfifo", Limit: 9}}
	c.Links[0].QoS = &chain.Qdisc{Kind: "tbf", Rate: 8e6}
	inv := loadInventory(t, "vm2")
	inv.Qdiscs = append(inv.Qdiscs, inventory.Item{Name: "htb", Status: inventory.OK}, inventory.Item{Name: "pfifo", Status: inventory.OK})
	l := mustPlan(t, c, inv).Links[0]
	if l.Shape.Kind != "tbf" || l.Ends[0].Shape != nil || l.Ends[1].Shape == nil || l.Ends[1].Shape.Burst == 0 || l.Ends[1].Shape.Child.Limit != 9 {
		t.Errorf("%+v, %+v", l.Shape, l.Ends)
	}
	if text, want := shapesText(l), "a.p0: tbf 8Mbps, b.p0: htb 4Mbps over pfifo"; text != want {
		t.Errorf("%q, want %q", text, want)
	}
}

func TestShapeOfMaxBitrate(t *testing.T) {
	for _, test := range []struct {
		rate  units.Bitrate
		burst units.Bytes
	}{
		{1e6, 80 * 1024},
		{1e9, 500_000},
		{100e9, 50_000_000},
	} {
		q := completed(wantedShape(&chain.Link{Requires: chain.Requires{MaxBitrate: test.rate}}))
		want := chain.Qdisc{Kind: "tbf", Rate: test.rate, Burst: test.burst, Latency: units.Duration(20 * time.Millisecond)}
		if !cmp.Equal(*q, want) {
			t.Errorf("shape at %v: %+v, want %+v", test.rate, *q, want)
		}
	}
	given := &chain.Qdisc{Kind: "tbf", Rate: 1e6, Burst: 9000, Latency: 5}
	if q := completed(wantedShape(&chain.Link{QoS: given})); !cmp.Equal(q, given) || q == given {
		t.Errorf("a full qos changed or is shared: %+v", q)
	}
	if q := completed(wantedShape(&chain.Link{})); q != nil {
		t.Errorf("a link without qos or max_bitrate is shaped: %+v", q)
	}
}

// What is allowed by a printed loss is enough: it is never rounded down.
func TestALossIsRoundedUp(t *testing.T) {
	for v, want := range map[float64]string{0.01: "0.01", 0.1234: "0.124", 0.12301: "0.124", 1.2341e-6: "1.24e-6", 0.9999: "1", 0: "0", 0.6: "0.6"} {
		if got := lossText(v); got != want {
			t.Errorf("%v is %s, want %s", v, got, want)
		}
	}
}
