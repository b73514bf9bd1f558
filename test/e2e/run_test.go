// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/drayage/dray/internal/host"
	"github.com/drayage/dray/internal/node/doctor"
	"github.com/drayage/dray/internal/spec/inventory"
)

// modest requirements, which any machine's kernel meets with room to spare.
const modest = "{latency: 200ms, percentile: 50, min_bitrate: 5Mbps, packet_loss_ratio: 0.2, mtu: 1500}"

func TestRunMeetsModestRequirements(t *testing.T) {
	b := newBench(t)
	file := b.file(pair{Name: "modest", Runtime: "runc", Command: `[sh, -c, "echo up; sleep 1000"]`, Requires: modest}.yaml())
	_, out := b.measure(0, "run", file)
	for _, name := range []string{"report.html", "records.jsonl", "plan.json", "inventory.json", "run.json", "chain.yaml", "log/a.log"} {
		if info, err := os.Stat(filepath.Join(out, name)); err != nil || info.Size() == 0 {
			t.Errorf("%s is missing or empty: %v", name, err)
		}
	}
	if err := os.Remove(filepath.Join(out, "report.html")); err != nil {
		t.Fatal(err)
	}
	again := b.want(0, "report", out)
	if !strings.Contains(again.Stdout, "all 4 requirements met") {
		t.Errorf("the report regenerated from the records: %s", again)
	}
	if _, err := os.Stat(filepath.Join(out, "report.html")); err != nil {
		t.Error(err)
	}
}

func TestFronthaulOnABridgeIsInfeasible(t *testing.T) {
	b := newBench(t)
	for _, calibrated := range []bool{false, true} {
		if calibrated {
			saveBridgeCalibration(t, b.state)
		}
		r := b.want(3, "run", example("fronthaul-on-bridge.yaml"), "--out", filepath.Join(t.TempDir(), "out"))
		if !strings.Contains(r.Err, "latency ≤ 25us at p99.99") {
			t.Errorf("calibrated %v: the constraint is not named: %s", calibrated, r)
		}
		if calibrated && !strings.Contains(r.Err, "records.jsonl") {
			t.Errorf("the evidence is not named: %s", r)
		}
	}
}

// saveBridgeCalibration stores a quiet two-core machine's measurements.
func saveBridgeCalibration(t *testing.T, state string) {
	t.Helper()
	us := time.Microsecond
	here, err := host.Describe()
	if err != nil {
		t.Fatal(err)
	}
	err = doctor.SaveCalibration(doctor.CalibrationFile(state), []inventory.Calibration{{
		Transport: "bridge", Measured: time.Now(), Source: "out/calibrate-bridge/records.jsonl", Kernel: here.Kernel, CPUModel: here.CPUModel,
		Latency: []inventory.LatencyPoint{
			{Percentile: 50, Latency: 56 * us}, {Percentile: 99, Latency: 130 * us}, {Percentile: 99.99, Latency: 1460 * us},
		},
		UDPBitrate: 2_700_000_000, UDPFrame: 1518, TCPBitrate: 14_700_000_000, PacketRate: 98_000, LossRatio: 1e-4, PDVp99: 100 * us,
	}})
	if err != nil {
		t.Fatal(err)
	}
}

func TestCappedIsInfeasibleAndMissedWhenMeasured(t *testing.T) {
	b := newBench(t)
	refused := b.want(3, "run", example("capped.yaml"), "--out", filepath.Join(t.TempDir(), "refused"))
	if !strings.Contains(refused.Err, "min_bitrate") {
		t.Errorf("the constraint is not named: %s", refused)
	}
	text, err := os.ReadFile(example("capped.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	warn := strings.Replace(string(text), "on_infeasible: refuse", "on_infeasible: warn", 1)
	if warn == string(text) {
		t.Fatal("examples/capped.yaml does not say on_infeasible: refuse")
	}
	b.measure(4, "run", b.file(warn))
}

func TestTheReportIsKeptWhereAFunctionFailsToStart(t *testing.T) {
	b := newBench(t)
	out := filepath.Join(t.TempDir(), "out")
	r := b.want(1, "run", b.file(pair{Name: "broken", Command: `[sh, -c, "echo the reason; exit 3"]`}.yaml()), "--profile", "quick", "--out", out)
	if !strings.Contains(r.Err, "the reason") {
		t.Errorf("the error does not say why: %s", r)
	}
	if _, err := os.Stat(filepath.Join(out, "report.html")); err != nil {
		t.Error(err)
	}
}

func TestTooShortARunIsNotMeasurable(t *testing.T) {
	b := newBench(t)
	file := b.file(pair{Name: "brief", Requires: "{min_bitrate: 5Mbps}"}.yaml())
	b.want(5, "run", file, "--rounds", "2", "--out", filepath.Join(t.TempDir(), "out"))
}

func TestWrongUseIsToldApart(t *testing.T) {
	b := newBench(t)
	for _, args := range [][]string{
		{"run"}, {"run", "a", "b"}, {"plan", "--no-such-flag", "x"}, {"run", example("capped.yaml"), "--profile", "endless"},
		{"run", example("f1-split.yaml"), "--duration", "1ms"}, {"calibrate", "teleport"}, {"no-such-command"},
		{"bench", "quick", "--no-lab"},
		{"bench", "quick", "--rounds", "1"},
		{"bench", "quick", "--containers", "docker"},
		{"bench", "k17-fig15", "--containers", "podman"},
	} {
		b.want(2, args...)
	}
	if r := b.want(1, "plan", b.file("kind: Chian\n")); !strings.Contains(r.Err, "chain.yaml:1:") {
		t.Errorf("the error does not name the line: %s", r)
	}
	b.want(1, "plan", "no-such-file.yaml")
}
