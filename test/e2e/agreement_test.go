// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/drayage/dray/internal/result/record"
)

// TestIperf3InsideAgreesWithIperf3ByHand measures the same link with dray and with iperf3
// alone, in turns. The link is slow: what a fast one carries depends on the CPU time that each
// gets while other tests run.
func TestIperf3InsideAgreesWithIperf3ByHand(t *testing.T) {
	b := newBench(t)
	b.want(0, "up", b.file(pair{Name: "agree", Transport: "bridge", Traffic: "tcp", QoS: "{qdisc: tbf, rate: 20Mbps}"}.yaml()))
	defer b.want(0, "down", "agree")
	a, z := b.netns("agree", "a"), b.netns("agree", "b")
	var inside, byHand []float64
	for range 3 {
		out := filepath.Join(t.TempDir(), "out")
		b.dray("verify", "agree", "--rounds", "1", "--duration", "1s", "--out", out)
		inside = append(inside, throughput(t, out, "a.p0"))
		byHand = append(byHand, iperf3ByHand(t, a, z, "198.18.0.2"))
	}
	t.Logf("inside dray %.1f Mb/s, by hand %.1f Mb/s", megabits(inside), megabits(byHand))
	if ratio := median(inside) / median(byHand); ratio < 0.75 || ratio > 1.33 {
		t.Errorf("medians differ by a factor of %.2f", ratio)
	}
}

func megabits(values []float64) []float64 {
	var out []float64
	for _, v := range values {
		out = append(out, v/1e6)
	}
	return out
}

func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	return sorted[len(sorted)/2]
}

// throughput is the records' figure for the direction from one port.
func throughput(t *testing.T, dir, from string) float64 {
	t.Helper()
	trials, _, err := record.ReadFile(filepath.Join(dir, "records.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	for _, trial := range trials {
		if trial.From == from && trial.Throughput != nil && !trial.Warmup {
			return float64(trial.Throughput.BitsPerSecond)
		}
	}
	t.Fatalf("no throughput from %s in %s", from, dir)
	return 0
}

// netns is the file of a function's network namespace.
func (b *bench) netns(chain, function string) string {
	b.t.Helper()
	text, err := os.ReadFile(filepath.Join(b.state, chain, "state.json"))
	if err != nil {
		b.t.Fatal(err)
	}
	var state struct {
		Sandboxes map[string]struct{ Netns struct{ Path string } }
	}
	if err := json.Unmarshal(text, &state); err != nil {
		b.t.Fatal(err)
	}
	return state.Sandboxes[function].Netns.Path
}

// iperf3ByHand runs iperf3 as a user would, and returns bit/s received.
func iperf3ByHand(t *testing.T, from, to, address string) float64 {
	t.Helper()
	server := exec.Command("nsenter", "--net="+to, "iperf3", "-s", "-1", "-p", "5999")
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = server.Process.Kill(); _ = server.Wait() }()
	type report struct {
		End struct {
			Received struct {
				BitsPerSecond float64 `json:"bits_per_second"`
			} `json:"sum_received"`
		}
	}
	var last []byte
	for range 50 { // until the server listens
		out, err := exec.Command("nsenter", "--net="+from, "iperf3", "-c", address, "-p", "5999", "-J", "-t", "1").Output()
		if err == nil {
			if bits := decode[report](t, result{Stdout: string(out)}).End.Received.BitsPerSecond; bits > 0 {
				return bits
			}
		}
		last = out
		time.Sleep(20 * time.Millisecond)
	}
	t.Fatalf("iperf3 by hand: %s", last)
	return 0
}
