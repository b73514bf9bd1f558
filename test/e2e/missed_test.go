// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// verdicts is what `dray verify --json` prints of each requirement.
type verdicts struct {
	Verdicts []struct {
		Requirement string `json:"requirement"`
		Verdict     string `json:"verdict"`
		Reason      string `json:"reason"`
		Measured    string `json:"measured"`
	} `json:"verdicts"`
}

// of is the verdict of one requirement.
func (v verdicts) of(requirement string) string {
	for _, one := range v.Verdicts {
		if one.Requirement == requirement {
			return one.Verdict
		}
	}
	return "absent"
}

// TestEachRequirementIsMissedThroughARealFault brings a chain up whose link
// meets its requirement, breaks the link for real, and sees the same chain
// miss it.
func TestEachRequirementIsMissedThroughARealFault(t *testing.T) {
	// A 20 Mbit/s bottleneck that queues for up to 200 ms.
	bottleneck := func(b *bench, t *testing.T) {
		b.inPort(t, "tc", "qdisc", "replace", "dev", "p0", "root", "tbf", "rate", "20mbit", "burst", "20kb", "latency", "200ms")
	}
	tests := []struct {
		requirement, requires, load string
		fault                       func(*bench, *testing.T)
	}{
		{"latency", "{latency: 50ms, percentile: 90}", "30Mbps", bottleneck},
		{"packet_delay_variation", "{packet_delay_variation: 50ms, percentile: 90}", "30Mbps", bottleneck},
		{"packet_loss_ratio", "{packet_loss_ratio: 0.1}", "40Mbps", bottleneck},
		{"min_bitrate", "{min_bitrate: 100Mbps}", "1Mbps", bottleneck},
		{"packet_rate", "{packet_rate: 20kpps}", "", func(b *bench, t *testing.T) {
			b.inPort(t, "tc", "qdisc", "replace", "dev", "p0", "root", "tbf", "rate", "2mbit", "burst", "4kb", "latency", "20ms")
		}},
		{"max_bitrate", "{max_bitrate: 200Mbps}", "", func(b *bench, t *testing.T) {
			b.inPort(t, "tc", "qdisc", "del", "dev", "p0", "root")
		}},
		{"mtu", "{mtu: 1500}", "", func(b *bench, t *testing.T) {
			b.inPort(t, "ip", "link", "set", "p0", "mtu", "1400")
		}},
	}
	for _, tt := range tests {
		t.Run(tt.requirement, func(t *testing.T) {
			b := newBench(t)
			p := pair{Name: "miss", Requires: tt.requires, Load: tt.load}
			b.want(0, "up", b.file(p.yaml()))
			defer b.want(0, "down", "miss")

			sound := b.want(0, "verify", "miss", "--profile", "quick", "--json", "--out", filepath.Join(t.TempDir(), "sound"))
			if got := decode[verdicts](t, sound).of(tt.requirement); got != "met" {
				t.Fatalf("before the fault: %s\n%s", got, sound)
			}
			tt.fault(b, t)
			broken := b.want(4, "verify", "miss", "--profile", "quick", "--json", "--out", filepath.Join(t.TempDir(), "broken"))
			if got := decode[verdicts](t, broken).of(tt.requirement); got != "missed" {
				t.Errorf("after the fault: %s\n%s", got, broken)
			}
		})
	}
}

// TestAStoppedPeerMissesEverything takes one end down.
func TestAStoppedPeerMissesEverything(t *testing.T) {
	b := newBench(t)
	p := pair{Name: "stopped", Requires: "{latency: 10ms, percentile: 90, packet_loss_ratio: 0.1, min_bitrate: 10Mbps}"}
	b.want(0, "up", b.file(p.yaml()))
	defer b.want(0, "down", "stopped")
	b.inPort(t, "ip", "link", "set", "p0", "down")
	out := b.want(4, "verify", "stopped", "--profile", "quick", "--json", "--out", filepath.Join(t.TempDir(), "o"))
	v := decode[verdicts](t, out)
	for _, requirement := range []string{"latency", "packet_loss_ratio", "min_bitrate"} {
		if got := v.of(requirement); got != "missed" {
			t.Errorf("%s: %s\n%s", requirement, got, out)
		}
	}
}

// TestAPinnedHogMissesLatency starves the function's CPU from inside its limits.
func TestAPinnedHogMissesLatency(t *testing.T) {
	b := newBench(t)
	text := strings.ReplaceAll(pair{Name: "hog", Requires: "{latency: 300us, percentile: 90}"}.yaml(),
		"runtime: process\n", "runtime: process\n    cpus: \"0\"\n")
	text = strings.Replace(text, "name: b\n    runtime: process\n    cpus: \"0\"\n", "name: b\n    runtime: process\n", 1)
	b.want(0, "up", b.file(text))
	defer b.want(0, "down", "hog")
	b.want(0, "verify", "hog", "--profile", "quick", "--out", filepath.Join(t.TempDir(), "sound"))

	ctx, cancel := context.WithCancel(context.Background())
	for range 12 {
		hog := b.command(ctx, "exec", "hog", "a", "--", "nice", "-n", "-20", "sh", "-c", "while :; do :; done")
		if err := hog.Start(); err != nil {
			t.Fatal(err)
		}
		defer func() { _ = hog.Wait() }()
	}
	defer cancel()
	out := b.want(4, "verify", "hog", "--profile", "quick", "--json", "--out", filepath.Join(t.TempDir(), "o"))
	if got := decode[verdicts](t, out).of("latency"); got != "missed" {
		t.Errorf("latency: %s\n%s", got, out)
	}
}

// inPort runs a host program in the network namespace of function a of the
// test's only chain.
func (b *bench) inPort(t *testing.T, argv ...string) {
	t.Helper()
	type status struct{ Chain string }
	chains := decode[[]status](t, b.want(0, "status", "--json"))
	if len(chains) != 1 {
		t.Fatalf("%d chains", len(chains))
	}
	args := append([]string{"exec", chains[0].Chain, "a", "--"}, argv...)
	b.want(0, args...)
}

// iperf3ByHand measures the pair's link with iperf3 alone, in bit/s.
func iperf3ByHand(t *testing.T, fromNetns, toNetns, address string, seconds int) float64 {
	t.Helper()
	server := exec.Command("nsenter", "--net="+toNetns, "iperf3", "-s", "-1", "-p", "5999")
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = server.Process.Kill(); _ = server.Wait() }()
	var out []byte
	var err error
	for range 20 { // until the server listens
		out, err = exec.Command("nsenter", "--net="+fromNetns, "iperf3", "-c", address, "-p", "5999", "-J", "-t", strconv.Itoa(seconds), "-O", "1").Output()
		if err == nil {
			break
		}
	}
	if err != nil {
		t.Fatalf("iperf3 by hand: %v\n%s", err, out)
	}
	type report struct {
		End struct {
			SumReceived struct {
				BitsPerSecond float64 `json:"bits_per_second"`
			} `json:"sum_received"`
		}
	}
	return decode[report](t, result{Stdout: string(out)}).End.SumReceived.BitsPerSecond
}
