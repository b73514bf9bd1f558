// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/drayage/dray/internal/node/doctor"
	"github.com/drayage/dray/internal/spec/inventory"
)

// A calibration replaces its predecessor, also one that cannot be read.
func TestKeepReplacesAnUnreadableCalibration(t *testing.T) {
	dir := t.TempDir()
	file := doctor.CalibrationFile(dir)
	if err := os.WriteFile(file, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	c := inventory.Calibration{
		Transport: "veth", Measured: time.Now().UTC(), Source: "records", Kernel: "k", CPUModel: "m",
		Latency: []inventory.LatencyPoint{{Percentile: 50, Latency: time.Microsecond}}, UDPBitrate: 1, UDPFrame: 1518, PacketRate: 1,
	}
	if err := keep(dir, c); err != nil {
		t.Fatal(err)
	}
	if all, err := doctor.LoadCalibration(file); err != nil || len(all) != 1 {
		t.Errorf("%+v, %v", all, err)
	}
	if old, err := os.ReadFile(file + ".unreadable"); err != nil || string(old) != "{" {
		t.Errorf("%q, %v", old, err)
	}
}

// The warning names the file and the remedy; without a fault there is none.
func TestWarningOfAnUnusableCalibration(t *testing.T) {
	var out bytes.Buffer
	a := &app{err: &out}
	if a.warnOfCalibration(&inventory.Inventory{}); out.Len() > 0 {
		t.Errorf("without a fault: %q", out.String())
	}
	a.warnOfCalibration(&inventory.Inventory{CalibrationFault: "/x/calibration.json: broken; `dray calibrate` measures again"})
	if got := out.String(); !strings.HasPrefix(got, "dray: warning: ") || !strings.Contains(got, "/x/calibration.json") || !strings.Contains(got, "dray calibrate") {
		t.Errorf("%q", got)
	}
}

// Only what was measured is printed.
func TestCalibratePrintsWhatItMeasured(t *testing.T) {
	var out bytes.Buffer
	a := &app{out: &out}
	if err := a.printCalibration([]inventory.Calibration{{Transport: "veth"}}); err != nil || !strings.HasPrefix(out.String(), "veth: ") || strings.Count(out.String(), "\n") != 1 {
		t.Errorf("%v: %q", err, out.String())
	}
}
