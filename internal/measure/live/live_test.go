// SPDX-License-Identifier: Apache-2.0

package live

import (
	"bytes"
	"context"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/expfmt"

	"github.com/drayage/dray/internal/link/broker"
	"github.com/drayage/dray/internal/link/telemetry"
	"github.com/drayage/dray/internal/link/telemetry/telemetrytest"
	"github.com/drayage/dray/internal/plan"
	"github.com/drayage/dray/internal/result/verdict"
	"github.com/drayage/dray/internal/spec/chain"
	"github.com/drayage/dray/internal/spec/units"
)

// TestLossIsAShareOfWhatWasOffered: a packet dropped by the receiver has been
// sent, one that could not be sent has not.
func TestLossIsAShareOfWhatWasOffered(t *testing.T) {
	l := telemetrytest.Reported(1, 2000, 20_000)
	l.Ends[0].Counters.TxDropped = 100_000
	f := telemetry.Total(telemetrytest.Snapshot(1, l))[0]
	if d := delivery(f); d.Sent != 200_000 || d.Lost != 120_000 || d.Received != 80_000 {
		t.Errorf("%+v of %+v", d, f)
	}
}

// requiring is the planned link of reported.
func requiring(latency time.Duration, ratio float64) plan.Link {
	r := units.Ratio(ratio)
	return plan.Link{Name: "ab",
		Ends:     []plan.End{{Function: "a", Port: "p0", Face: chain.FaceNative}, {Function: "b", Port: "p0", Face: chain.FaceNative}},
		Requires: chain.Requires{Latency: units.Duration(latency), Percentile: 99, LossRatio: &r, MinBitrate: 1e9},
	}
}

// watched samples a link for n seconds.
func watched(t *testing.T, n int, planned plan.Link, at func(second uint64) broker.LinkStatus) []Link {
	t.Helper()
	second := 0
	w := &Watcher{Keep: 5, Source: func(context.Context) ([]Chain, error) {
		second++
		return []Chain{{telemetrytest.Snapshot(second, at(uint64(second))), []plan.Link{planned}}}, nil
	}}
	var links []Link
	for range n + 1 {
		var err error
		if links, err = w.Sample(context.Background()); err != nil {
			t.Fatal(err)
		}
	}
	return links
}

// TestNothingIsCountedTwice: the broker is away for two samples, then up for one
// before the functions are back. Their earlier reports are not new.
func TestNothingIsCountedTwice(t *testing.T) {
	second := 0
	w := &Watcher{Keep: 9, Source: func(context.Context) ([]Chain, error) {
		second++
		s := telemetrytest.Snapshot(second, telemetrytest.Reported(uint64(second), 2000, 0))
		switch second {
		case 4, 5:
			s.Links = nil
		case 6:
			for i := range s.Links[0].Ends {
				e := &s.Links[0].Ends[i]
				*e = broker.EndStatus{Function: e.Function, Port: e.Port}
			}
		}
		return []Chain{{s, []plan.Link{requiring(time.Second, 0.5)}}}, nil
	}}
	var links []Link
	for range 8 {
		var err error
		if links, err = w.Sample(context.Background()); err != nil {
			t.Fatal(err)
		}
	}
	if sum := links[0].Window[0]; sum.Received != 700_000 || sum.Sent != 700_000 || sum.Latency.Count != 7000 {
		t.Errorf("in seven seconds: %+v", sum)
	}
	if sum := links[0].Window[0].Interval; sum != 7*time.Second {
		t.Errorf("%v of the seven seconds", sum)
	}
}

// oneWord is the verdict on a requirement in the direction with traffic.
func oneWord(t *testing.T, links []Link, requirement string) verdict.Word {
	t.Helper()
	for _, v := range links[0].Verdicts {
		if v.Requirement != requirement {
			continue
		}
		for _, f := range v.Directions {
			if f.Direction == "a.p0 → b.p0" {
				return f.Verdict
			}
		}
	}
	t.Fatalf("no verdict on %s: %+v", requirement, links[0].Verdicts)
	return ""
}

func TestVerdictsOfLiveTraffic(t *testing.T) {
	good := func(n uint64) broker.LinkStatus { return telemetrytest.Reported(n, 2000, 0) }
	for _, tt := range []struct {
		name        string
		seconds     int
		planned     plan.Link
		at          func(uint64) broker.LinkStatus
		requirement string
		want        verdict.Word
	}{
		{"latency within", 4, requiring(3*time.Microsecond, 1e-3), good, "latency", verdict.Met},
		{"latency beyond", 4, requiring(800*time.Nanosecond, 1e-3), good, "latency", verdict.Missed},
		{"latency within, and a few lost", 4, requiring(3*time.Microsecond, 1e-3), func(n uint64) broker.LinkStatus { return telemetrytest.Reported(n, 2000, n*50) }, "latency", verdict.Met},
		{"one interval", 1, requiring(3*time.Microsecond, 1e-3), good, "latency", verdict.NotMeasurable},
		{"nothing lost", 4, requiring(3*time.Microsecond, 1e-3), good, "packet_loss_ratio", verdict.Met},
		{"lost", 4, requiring(3*time.Microsecond, 1e-3), func(n uint64) broker.LinkStatus { return telemetrytest.Reported(n, 2000, n*5000) }, "packet_loss_ratio", verdict.Missed},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := oneWord(t, watched(t, tt.seconds, tt.planned, tt.at), tt.requirement); got != tt.want {
				t.Errorf("%s, want %s", got, tt.want)
			}
		})
	}
}

// Traffic shows what rate a link carries, and never that it carries no more.
func TestRatesOfLiveTraffic(t *testing.T) {
	l := requiring(time.Second, 0.5)
	flows := func(bytes uint64) (all [][]telemetry.Flow) {
		for range 5 {
			var both []telemetry.Flow
			for _, d := range [][2]string{{"a.p0", "b.p0"}, {"b.p0", "a.p0"}} {
				both = append(both, telemetry.Flow{Link: l.Name, From: d[0], To: d[1], Interval: 2 * time.Second, Sent: 2000, Received: 2000, Bytes: bytes})
			}
			all = append(all, both)
		}
		return all
	}
	const enough = 250_000_000 + 2000*66 // bytes in 2 s are 1 Gbps of payload and all headers
	for bytes, want := range map[uint64]verdict.Word{enough: verdict.Met, enough - 1000: verdict.NotMeasurable} {
		for _, v := range judge(l, flows(bytes)) {
			if v.Requirement == "min_bitrate" && v.Verdict != want {
				t.Errorf("%d bytes: %+v", bytes, v)
			}
		}
	}
	if len(judge(l, flows(enough))) != 3 {
		t.Error("the bitrate is not judged")
	}
}

func TestTheWindowForgets(t *testing.T) {
	links := watched(t, 9, requiring(time.Second, 0.5), func(n uint64) broker.LinkStatus { return telemetrytest.Reported(n, 2000, 0) })
	if w := links[0].Window[0]; w.Interval != 5*time.Second || w.Received != 500_000 || w.Latency.Count != 5000 {
		t.Errorf("%+v", w)
	}
	if total := links[0].Total[0]; total.Received != 1_000_000 {
		t.Errorf("%+v", total)
	}
}

// TestLiesDoNoHarm reports counts that no function can have.
func TestLiesDoNoHarm(t *testing.T) {
	lies := func(n uint64) broker.LinkStatus {
		l := telemetrytest.Reported(n, 2000, 0)
		for i := range l.Ends {
			c := &l.Ends[i].Counters
			c.TxPackets, c.TxDropped, c.RxPackets, c.RxBytes, c.RxDropped = math.MaxUint64-n, math.MaxUint64, math.MaxUint64, math.MaxUint64, math.MaxUint64
			l.Ends[i].Latency = broker.Latency{Count: 1, Buckets: []broker.Bucket{{Low: 1e300, High: math.Inf(1), Count: math.MaxUint64}}}
		}
		return l
	}
	links := watched(t, 4, requiring(time.Second, 0.5), lies)
	if err := Text(&bytes.Buffer{}, links, 0); err != nil {
		t.Error(err)
	}
	if _, err := metricsText(collectorOf(links)); err != nil {
		t.Error(err)
	}
}

func metricsText(c prometheus.Collector) (string, error) {
	r := prometheus.NewPedanticRegistry()
	if err := r.Register(c); err != nil {
		return "", err
	}
	families, err := r.Gather()
	if err != nil {
		return "", err
	}
	var out bytes.Buffer
	for _, f := range families {
		if _, err := expfmt.MetricFamilyToText(&out, f); err != nil {
			return "", err
		}
	}
	return out.String(), nil
}

func TestMetrics(t *testing.T) {
	links := watched(t, 4, requiring(3*time.Microsecond, 1e-3), func(n uint64) broker.LinkStatus { return telemetrytest.Reported(n, 2000, 0) })
	text, err := metricsText(collectorOf(links))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`dray_port_received_packets_total{chain="c",from="a.p0",link="ab",to="b.p0"} 500000`,
		`dray_port_latency_seconds_bucket{chain="c",from="a.p0",link="ab",to="b.p0",le="1e-06"} 0`,
		`dray_port_latency_seconds_bucket{chain="c",from="a.p0",link="ab",to="b.p0",le="2e-06"} 5000`,
		`dray_port_latency_seconds_count{chain="c",from="a.p0",link="ab",to="b.p0"} 5000`,
		`dray_link_up{chain="c",link="ab"} 1`,
		`dray_link_requirement_verdict{chain="c",link="ab",requirement="packet_loss_ratio",verdict="met"} 0`,
		`dray_link_requirement_verdict{chain="c",link="ab",requirement="packet_loss_ratio",verdict="missed"} 0`,
		`dray_link_requirement_verdict{chain="c",link="ab",requirement="packet_loss_ratio",verdict="not_measurable"} 1`,
	} {
		if !strings.Contains(text, want) {
			t.Errorf("lacks %s\n%s", want, text)
		}
	}
}

func TestNamespacedMetrics(t *testing.T) {
	links := watched(t, 1, requiring(time.Second, 0.5), func(n uint64) broker.LinkStatus { return telemetrytest.Reported(n, 2000, 0) })
	links[0].Chain = "ran/f1"
	text, err := metricsText(NewNamespacedCollector(func() []Link { return links }))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`dray_link_up{chain="f1",link="ab",namespace="ran"} 1`,
		`dray_port_sent_packets_total{chain="f1",from="a.p0",link="ab",namespace="ran",to="b.p0"} 200000`,
	} {
		if !strings.Contains(text, want) {
			t.Errorf("lacks %s\n%s", want, text)
		}
	}
}

func collectorOf(links []Link) *Collector { return NewCollector(func() []Link { return links }) }

func TestText(t *testing.T) {
	var out bytes.Buffer
	links := watched(t, 4, requiring(3*time.Microsecond, 1e-3), func(n uint64) broker.LinkStatus { return telemetrytest.Reported(n, 2000, 0) })
	if err := Text(&out, links, 0); err != nil {
		t.Fatal(err)
	}
	first, _, _ := strings.Cut(out.String(), "\n\n")
	want := []string{
		"DIRECTION PACKETS BITRATE P50 P99 P99.9 LOST WAITING",
		"c/ab: shm active, generation 1, 1.0 MiB plain pages",
		"a.p0 → b.p0 100kpps 51.2Mbps 1.5us 2us – 0 0",
		"b.p0 → a.p0 0pps 0bps – – – 0 0",
	}
	var got []string
	for _, line := range strings.Split(first, "\n") {
		got = append(got, strings.Join(strings.Fields(line), " "))
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
