// SPDX-License-Identifier: Apache-2.0

package host

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// powercap is where the kernel shows the energy counters (RAPL) of Intel's and AMD's
// processors.
const powercap = "sys/class/powercap"

// EnergyMeter adds up the energy of all processor packages since it was made. A
// package has everything in it: every program's cores, idle ones, and the caches.
type EnergyMeter struct {
	packages []energyCounter
	total    uint64 // µJ
}

// energyCounter is one package's counter, which begins again after its range.
type energyCounter struct {
	file       string
	last, most uint64 // µJ
}

// NewEnergyMeter finds this host's counters. It returns *Unsupported if there are
// none, as in virtual machines.
func NewEnergyMeter() (*EnergyMeter, error) { return root("/").energyMeter() }

func (r root) energyMeter() (*EnergyMeter, error) {
	unsupported := &Unsupported{What: "energy", Why: "this machine shows no energy counters (RAPL), as most virtual machines do not", Fix: "measure on bare metal; load intel_rapl_msr if /" + powercap + " is empty"}
	zones, err := os.ReadDir(filepath.Join(string(r), powercap))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, unsupported
	}
	if err != nil {
		return nil, fmt.Errorf("energy: %w", err)
	}
	m := &EnergyMeter{}
	for _, zone := range zones {
		dir := filepath.Join(powercap, zone.Name())
		// intel-rapl-mmio and psys count the same energy again.
		if !strings.HasPrefix(zone.Name(), "intel-rapl:") || !strings.HasPrefix(r.line(filepath.Join(dir, "name")), "package") {
			continue
		}
		c := energyCounter{file: filepath.Join(string(r), dir, "energy_uj")}
		if c.most, err = strconv.ParseUint(r.line(filepath.Join(dir, "max_energy_range_uj")), 10, 64); err == nil {
			c.last, err = c.read()
		}
		if err != nil {
			return nil, fmt.Errorf("energy of %s: %w", zone.Name(), err)
		}
		m.packages = append(m.packages, c)
	}
	if len(m.packages) == 0 {
		return nil, unsupported
	}
	return m, nil
}

func (c energyCounter) read() (uint64, error) {
	text, err := os.ReadFile(c.file)
	if err != nil {
		return 0, err
	}
	return strconv.ParseUint(strings.TrimSpace(string(text)), 10, 64)
}

// Read is the energy since the meter was made, in J. It must be called more often
// than a counter wraps: after minutes at the earliest.
func (m *EnergyMeter) Read() (float64, error) {
	for i := range m.packages {
		c := &m.packages[i]
		now, err := c.read()
		if err != nil {
			return 0, fmt.Errorf("energy: %w", err)
		}
		if now < c.last { // it began again at 0
			m.total += c.most - c.last + now
		} else {
			m.total += now - c.last
		}
		c.last = now
	}
	return float64(m.total) / 1e6, nil
}
