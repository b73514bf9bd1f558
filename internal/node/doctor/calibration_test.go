// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/drayage/dray/internal/spec/inventory"
	"github.com/drayage/dray/test/testenv"
)

func sample() []inventory.Calibration {
	return []inventory.Calibration{
		{
			Transport: "veth", Measured: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), Source: "records.jsonl run 7", Kernel: "6.1.0-18-amd64", CPUModel: "Intel Xeon",
			Latency:    []inventory.LatencyPoint{{Percentile: 50, Latency: 20 * time.Microsecond}, {Percentile: 99.99, Latency: time.Millisecond}},
			UDPBitrate: 2e9, UDPFrame: 1518, TCPBitrate: 18e9, PacketRate: 240e3, LossRatio: 0.001, PDVp99: 30 * time.Microsecond, Marks: []string{"emulated"},
		},
		{Transport: "bridge", Measured: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), Source: "run 8", Kernel: "5.10", CPUModel: "Intel Xeon"},
	}
}

func TestCalibrationRoundTrip(t *testing.T) {
	path := CalibrationFile(t.TempDir())
	if _, err := LoadCalibration(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
	for i := 0; i < 2; i++ { // the second one replaces
		if err := SaveCalibration(path, sample()); err != nil {
			t.Fatal(err)
		}
	}
	got, err := LoadCalibration(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(sample(), got); diff != "" {
		t.Error(diff)
	}
	if entries, _ := os.ReadDir(filepath.Dir(path)); len(entries) != 1 {
		t.Errorf("files left: %v", entries)
	}
}

// TestACalibrationTakesItsPlace, whatever is there.
func TestACalibrationTakesItsPlace(t *testing.T) {
	for name, damage := range testenv.Damages(`{"version":99}`) {
		dir := t.TempDir()
		path := CalibrationFile(dir)
		damage(t, path)
		if c, err := LoadCalibration(path); err == nil || c != nil {
			t.Errorf("%s is read as %+v", name, c)
		}
		testenv.Must(t, SaveCalibration(path, sample()))
		if c, err := LoadCalibration(path); err != nil || len(c) != len(sample()) {
			t.Errorf("%s: %+v, %v", name, c, err)
		}
		damage(t, filepath.Join(dir, ranFile))
		testenv.Must(t, MarkRun(dir, Transports.Key("veth")))
		if known, err := ran(dir); err != nil || !slices.Contains(known, Transports.Key("veth")) {
			t.Errorf("what has run, %s: %q, %v", name, known, err)
		}
	}
}

func TestSaveCalibrationRefuses(t *testing.T) {
	path := CalibrationFile(t.TempDir())
	bad := sample()
	bad[0].Source = ""
	if err := SaveCalibration(path, bad); err == nil {
		t.Error("saved a figure without its source")
	}
	if err := SaveCalibration(filepath.Join(path, "no", "such"), sample()); err == nil {
		t.Error("saved in a directory that does not exist")
	}
	if _, err := os.Stat(path); err == nil {
		t.Error("left a file")
	}
}

const entry = `"transport":"veth","measured":"2026-01-02T03:04:05Z","source":"run 7","kernel":"6.1","cpu_model":"Xeon"`

var hostile = map[string]struct{ file, says string }{
	"empty":              {``, "EOF"},
	"not JSON":           {`hello`, "invalid character"},
	"an array":           {`[]`, "cannot unmarshal array"},
	"null":               {`null`, "format version 0"},
	"cut short":          {`{"version":2,"calibration":[{` + entry, "EOF"},
	"no version":         {`{"calibration":[]}`, "format version 0"},
	"an older version":   {`{"version":1}`, "format version 1"},
	"a later version":    {`{"version":3}`, "format version 3"},
	"unknown field":      {`{"version":2,"calibration":[{` + entry + `,"latencies":[]}]}`, `unknown field "latencies"`},
	"two objects":        {`{"version":2}{"version":2}`, "more data follows"},
	"no transport":       {`{"version":2,"calibration":[{"source":"x"}]}`, "entry 1 names no transport"},
	"twice":              {`{"version":2,"calibration":[{` + entry + `},{` + entry + `}]}`, "appears twice"},
	"no source":          {`{"version":2,"calibration":[{"transport":"veth","measured":"2026-01-02T03:04:05Z"}]}`, "no source"},
	"no machine":         {`{"version":2,"calibration":[{"transport":"veth","measured":"2026-01-02T03:04:05Z","source":"x"}]}`, "no kernel"},
	"no time":            {`{"version":2,"calibration":[{"transport":"veth","source":"x"}]}`, "no time"},
	"loss of 2":          {`{"version":2,"calibration":[{` + entry + `,"loss_ratio":2}]}`, "loss_ratio 2"},
	"negative loss":      {`{"version":2,"calibration":[{` + entry + `,"loss_ratio":-0.1}]}`, "loss_ratio -0.1"},
	"negative bitrate":   {`{"version":2,"calibration":[{` + entry + `,"udp_bitrate":-1}]}`, "cannot unmarshal number -1"},
	"huge number":        {`{"version":2,"calibration":[{` + entry + `,"loss_ratio":1e999}]}`, "cannot unmarshal number"},
	"percentile 101":     {`{"version":2,"calibration":[{` + entry + `,"latency":[{"percentile":101,"latency":1}]}]}`, "percentile 101"},
	"negative latency":   {`{"version":2,"calibration":[{` + entry + `,"latency":[{"percentile":99,"latency":-1}]}]}`, "impossible"},
	"percentiles fall":   {`{"version":2,"calibration":[{` + entry + `,"latency":[{"percentile":99,"latency":1},{"percentile":50,"latency":2}]}]}`, "falls from"},
	"latency falls":      {`{"version":2,"calibration":[{` + entry + `,"latency":[{"percentile":50,"latency":2},{"percentile":99,"latency":1}]}]}`, "falls from"},
	"negative variation": {`{"version":2,"calibration":[{` + entry + `,"pdv_p99":-1}]}`, "negative"},
	"too long":           {`{"version":2}` + strings.Repeat(" ", maxCalibration), "longer than"},
}

func TestLoadCalibrationRefuses(t *testing.T) {
	path := CalibrationFile(t.TempDir())
	for name, test := range hostile {
		if err := os.WriteFile(path, []byte(test.file), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := LoadCalibration(path)
		if err == nil || !strings.Contains(err.Error(), test.says) || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: error %v does not name %q and the file", name, err, test.says)
		}
	}
}

// TestLoadCalibrationOfNoFile: what is no file is refused, and a pipe does not block.
func TestLoadCalibrationOfNoFile(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := exec.Command("mkfifo", pipe).Run(); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{pipe, t.TempDir()} {
		var inv inventory.Inventory
		if RecallCalibration(&inv, path); inv.CalibrationFault != path+" is not a file" || inv.Calibration != nil {
			t.Errorf("%s: %q, %v", path, inv.CalibrationFault, inv.Calibration)
		}
	}
}

// FuzzCalibration: every accepted file is valid, and can be saved and loaded again.
func FuzzCalibration(f *testing.F) {
	for _, test := range hostile {
		if len(test.file) < 4096 {
			f.Add([]byte(test.file))
		}
	}
	f.Add([]byte(`{"version":2,"calibration":[{` + entry + `,"latency":[{"percentile":99,"latency":1}]}]}`))
	path := filepath.Join(f.TempDir(), "calibration.json")
	f.Fuzz(func(t *testing.T, b []byte) {
		c, err := parseCalibration(b)
		if err != nil {
			return
		}
		if err := SaveCalibration(path, c); err != nil {
			t.Fatalf("accepted, but not saved: %v", err)
		}
		if _, err := LoadCalibration(path); err != nil {
			t.Fatalf("saved, but not loaded: %v", err)
		}
	})
}

// TestCalibrationOutlivesARestart: a reboot empties /run, but not /var/lib. Any
// other state directory keeps its own.
func TestCalibrationOutlivesARestart(t *testing.T) {
	for dir, want := range map[string]string{
		"/run/dray": "/var/lib/dray/calibration.json",
		"/srv/test": "/srv/test/calibration.json",
	} {
		if got := CalibrationFile(dir); got != want {
			t.Errorf("with the state in %s: %s, want %s", dir, got, want)
		}
	}
}

// TestCalibrationOfAnotherMachineIsStale: it is shown with the reason, and does not
// count.
func TestCalibrationOfAnotherMachineIsStale(t *testing.T) {
	all := sample()
	markStale(all, inventory.Host{Kernel: "6.1.0-18-amd64", CPUModel: "Intel Xeon"})
	if all[0].Stale != "" || all[1].Stale != "it was measured under another kernel (5.10)" {
		t.Errorf("%+v", all)
	}
	markStale(all, inventory.Host{Kernel: "6.1.0-18-amd64", CPUModel: "AMD EPYC"})
	lines := calibrated(all, all[0].Measured.Add(75*time.Hour))
	for i, name := range []string{"veth", "bridge"} {
		if want := name + " (2026-01-02 03:04, 3 days old): not used, because it was measured on another machine (Intel Xeon); fix: dray calibrate " + name; lines[i] != want {
			t.Errorf("got  %s\nwant %s", lines[i], want)
		}
	}
}

func TestAge(t *testing.T) {
	measured := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for age, want := range map[time.Duration]string{
		time.Minute: "less than an hour old", 47 * time.Hour: "47 hours old", 48 * time.Hour: "2 days old", 8000 * time.Hour: "333 days old",
	} {
		if got := (inventory.Calibration{Measured: measured}).Age(measured.Add(age)); got != want {
			t.Errorf("after %v: %q, want %q", age, got, want)
		}
	}
	if got := (inventory.Calibration{Measured: measured}).Age(time.Time{}); got != "" {
		t.Errorf("without a clock: %q", got)
	}
}
