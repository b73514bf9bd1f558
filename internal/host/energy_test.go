// SPDX-License-Identifier: Apache-2.0

package host

import (
	"errors"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// rapl is a machine with two packages. Its other zones count the same energy again, or a part of it.
var rapl = map[string]string{
	"intel-rapl:0/name": "package-0\n", "intel-rapl:0/energy_uj": "900000000\n", "intel-rapl:0/max_energy_range_uj": "1000000000\n",
	"intel-rapl:1/name": "package-1\n", "intel-rapl:1/energy_uj": "5\n", "intel-rapl:1/max_energy_range_uj": "1000000000\n",
	"intel-rapl:2/name": "psys\n", "intel-rapl:2/energy_uj": "7\n", "intel-rapl:2/max_energy_range_uj": "1000000000\n",
	"intel-rapl:0:0/name": "core\n", "intel-rapl:0:0/energy_uj": "3\n",
	"intel-rapl-mmio:0/name": "package-0\n", "intel-rapl-mmio:0/energy_uj": "900000000\n", "intel-rapl-mmio:0/max_energy_range_uj": "1000000000\n",
	"intel-rapl/enabled": "1\n", "dtpm/name": "package\n",
}

func raplTree(t *testing.T, changes map[string]string) root {
	files := map[string]string{"proc/version": "x\n"}
	all := maps.Clone(rapl)
	maps.Copy(all, changes)
	for name, text := range all {
		files[filepath.Join(powercap, name)] = text
	}
	return tree(t, files)
}

func TestEnergyMeter(t *testing.T) {
	r := raplTree(t, nil)
	m, err := r.energyMeter()
	must(t, err)
	for _, step := range []struct {
		first, second string
		want          float64
	}{
		{"900000000", "5", 0},
		{"950000000", "20000005", 70},
		{"30000000", "20000005", 150},              // the first began again: 50 J to its end, and 30 J
		{"30000000", "20000004", 150 + 999.999999}, // so did the second, almost in full
	} {
		must(t, os.WriteFile(filepath.Join(string(r), powercap, "intel-rapl:0/energy_uj"), []byte(step.first+"\n"), 0o644))
		must(t, os.WriteFile(filepath.Join(string(r), powercap, "intel-rapl:1/energy_uj"), []byte(step.second+"\n"), 0o644))
		if got, err := m.Read(); err != nil || got != step.want {
			t.Errorf("at %s and %s: %v J, want %v: %v", step.first, step.second, got, step.want, err)
		}
	}
	must(t, os.Remove(filepath.Join(string(r), powercap, "intel-rapl:1/energy_uj")))
	if _, err := m.Read(); err == nil {
		t.Error("a counter that is gone gives energy")
	}
}

// A machine without counters says so; a counter that cannot be read is another fault.
func TestNoEnergyMeter(t *testing.T) {
	for name, r := range map[string]root{
		"no powercap": tree(t, map[string]string{"proc/version": "x\n"}),
		"no package":  raplTree(t, map[string]string{"intel-rapl:0/name": "dram\n", "intel-rapl:1/name": "dram\n"}),
	} {
		var unsupported *Unsupported
		if _, err := r.energyMeter(); !errors.As(err, &unsupported) || !strings.Contains(unsupported.Why, "shows no energy counters") {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, changes := range []map[string]string{{"intel-rapl:0/energy_uj": "x\n"}, {"intel-rapl:1/max_energy_range_uj": "\n"}} {
		if _, err := raplTree(t, changes).energyMeter(); err == nil || errors.Is(err, ErrUnsupported) {
			t.Errorf("%v: %v", changes, err)
		}
	}
}
