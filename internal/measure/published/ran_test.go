// SPDX-License-Identifier: Apache-2.0

package published

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/drayage/dray/internal/result/record"
	"github.com/drayage/dray/internal/result/verdict"
	"github.com/drayage/dray/internal/spec/chain"
	"github.com/drayage/dray/internal/spec/experiment"
)

// Every cell of a RAN is a valid chain.
func TestRANText(t *testing.T) {
	for _, c := range []experiment.Cell{
		{Tool: experiment.ToolRAN, Transport: "veth", Face: chain.FaceNetdev, Runtime: chain.RuntimeProcess},
		{Tool: experiment.ToolRAN, Transport: "ovs", Face: chain.FaceNative, Runtime: chain.RuntimeRunc},
		{Tool: experiment.ToolRAN, Transport: "vxlan", Face: chain.FaceNative, Runtime: chain.RuntimeProcess, Hosts: 2},
		{Tool: experiment.ToolRAN, Transport: "veth", Face: chain.FaceNative, Runtime: chain.RuntimeDocker},
	} {
		parsed, err := chain.Parse(c.String(), chainText(nil, c))
		if err != nil {
			t.Errorf("%v: %v", c, err)
			continue
		}
		base := parsed.Functions[1]
		if base.Name != ranBase || base.Runtime != c.Runtime {
			t.Errorf("%v: the base station is %s in %s", c, base.Name, base.Runtime)
		}
		if got, want := len(parsed.Links), map[chain.Face]int{chain.FaceNetdev: 2, chain.FaceNative: 3}[c.Face]; got != want {
			t.Errorf("%v: %d links, want %d", c, got, want)
		}
	}
}

// The two ends of the radio send to where the other receives.
func TestRANSamplesMeet(t *testing.T) {
	for _, face := range []chain.Face{chain.FaceNetdev, chain.FaceNative} {
		c := experiment.Cell{Face: face}
		base, mobile := strings.Split(ranSamples(c, 1)[1], ","), strings.Split(ranSamples(c, 2)[1], ",")
		kind := base[0][:strings.Index(base[0], ":")+1]
		if strings.TrimPrefix(base[0], kind) != mobile[1] || strings.TrimPrefix(mobile[0], kind) != base[1] {
			t.Errorf("%s: %v and %v", face, base, mobile)
		}
	}
}

func TestRANCost(t *testing.T) {
	at := time.Unix(0, 0)
	before := ranMoment{at, map[string]time.Duration{ranBase: time.Second}, 1000}
	after := ranMoment{at.Add(2 * time.Second), map[string]time.Duration{ranBase: 1500 * time.Millisecond}, 2000}
	cost, err := after.since(before)
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range [][2]float64{{cost.realTime, 0.5}, {cost.share[ranBase], 25}, {cost.perSubframe[ranBase], 500}} {
		if math.Abs(v[0]-v[1]) > 1e-9 {
			t.Errorf("%v, want %v", v[0], v[1])
		}
	}
	if _, err := before.since(before); err == nil {
		t.Error("no subframe has a cost")
	}
}

func TestReceivedBy(t *testing.T) {
	const table = "Inter-|   Receive  |  Transmit\n face |bytes    packets|bytes\n    lo:     12       1    0\n radio: 46080      9    0\n"
	if n, err := receivedBy(table, "radio"); n != 46080 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
	for _, name := range []string{"eth0", "face", "rad"} {
		if _, err := receivedBy(table, name); err == nil {
			t.Errorf("an interface %q was found", name)
		}
	}
}

func TestPingMean(t *testing.T) {
	const answered = "40 packets transmitted, 40 received\nrtt min/avg/max/mdev = 20.464/40.279/48.625/8.067 ms\n"
	if mean, err := pingMean(answered); mean != 40.279 || err != nil {
		t.Errorf("%v, %v", mean, err)
	}
	if _, err := pingMean("40 packets transmitted, 0 received, 100% packet loss\n"); err == nil {
		t.Error("nothing was answered")
	}
}

// S1 is met only if every requirement is, and unknown if one is.
func TestRANVerdict(t *testing.T) {
	for _, c := range []struct {
		words []verdict.Word
		met   float64
		known bool
	}{
		{[]verdict.Word{verdict.Met, verdict.Met}, 1, true},
		{[]verdict.Word{verdict.Met, verdict.Missed, verdict.Met}, 0, true},
		{[]verdict.Word{verdict.Met, verdict.NotMeasurable, verdict.Met}, 0, false},
		{[]verdict.Word{verdict.NotMeasurable, verdict.Missed}, 0, true},
		{[]verdict.Word{verdict.Missed, verdict.NotMeasurable}, 0, true},
	} {
		e := &record.Experiment{Values: map[string]float64{}, Why: map[string]string{}}
		for _, word := range c.words {
			addVerdict(e, "s1_met", verdict.Verdict{Verdict: word, Requirement: "latency", Reason: "why"})
		}
		if met, known := e.Values["s1_met"]; met != c.met || known != c.known {
			t.Errorf("%v: %v, %v", c.words, met, known)
		}
	}
}
