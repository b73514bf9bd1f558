// SPDX-License-Identifier: Apache-2.0

package host

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Usage is the usage of a control group and everything below it.
type Usage struct {
	At     time.Duration // CLOCK_MONOTONIC
	CPU    time.Duration // since the group began
	Memory uint64        // now, bytes; 0: no controller
}

// Meter reads one control group's usage repeatedly.
type Meter struct {
	cpu, memory string // files
	cpuV2       bool   // cpu is cpu.stat
}

// NewMeter finds this host's usage files for a control group. It returns
// *Unsupported if no hierarchy accounts CPU time.
func NewMeter(c Cgroup) (*Meter, error) {
	hs, err := hierarchies()
	if err != nil {
		return nil, err
	}
	m := &Meter{}
	for _, h := range hs {
		dir := filepath.Join(h.mount, c.Path)
		switch {
		case h.v2:
			// A v2 hierarchy accounts CPU time without any controller.
			if m.cpu == "" {
				m.cpu, m.cpuV2 = existing(dir, "cpu.stat"), true
			}
			if m.memory == "" {
				m.memory = existing(dir, "memory.current")
			}
		case h.has("cpuacct"):
			if f := existing(dir, "cpuacct.usage"); f != "" {
				m.cpu, m.cpuV2 = f, false
			}
		case h.has("memory"):
			if f := existing(dir, "memory.usage_in_bytes"); f != "" {
				m.memory = f
			}
		}
	}
	if m.cpu == "" {
		return nil, &Unsupported{What: "CPU time of " + c.Path, Why: "no cgroup hierarchy accounts for it", Fix: "mount cgroup2, or cgroup with cpuacct"}
	}
	return m, nil
}

func existing(dir, name string) string {
	path := filepath.Join(dir, name)
	if _, err := os.Stat(path); err != nil {
		return ""
	}
	return path
}

// Read reads the usage.
func (m *Meter) Read() (Usage, error) {
	u := Usage{}
	text, err := os.ReadFile(m.cpu)
	if err != nil {
		return u, fmt.Errorf("CPU time of a control group: %w", err)
	}
	if u.At, err = Monotonic(); err != nil {
		return u, err
	}
	if u.CPU, err = cpuTime(string(text), m.cpuV2); err != nil {
		return u, fmt.Errorf("%s: %w", m.cpu, err)
	}
	if m.memory == "" {
		return u, nil
	}
	if text, err = os.ReadFile(m.memory); err != nil {
		return u, fmt.Errorf("memory of a control group: %w", err)
	}
	if u.Memory, err = strconv.ParseUint(strings.TrimSpace(string(text)), 10, 64); err != nil {
		return u, fmt.Errorf("%s: %w", m.memory, err)
	}
	return u, nil
}

// cpuTime reads cpuacct.usage of v1 (ns) or cpu.stat of v2 (µs, named).
func cpuTime(text string, v2 bool) (time.Duration, error) {
	unit := time.Nanosecond
	if v2 {
		_, rest, ok := strings.Cut("\n"+text, "\nusage_usec ")
		if !ok {
			return 0, errors.New("it has no usage_usec")
		}
		text, _, _ = strings.Cut(rest, "\n")
		unit = time.Microsecond
	}
	n, err := strconv.ParseInt(strings.TrimSpace(text), 10, 64)
	if err != nil {
		return 0, err
	}
	return time.Duration(n) * unit, nil
}

// Monotonic is the time of CLOCK_MONOTONIC, the same for every program on this host
// and in its containers.
func Monotonic() (time.Duration, error) {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts); err != nil {
		return 0, fmt.Errorf("CLOCK_MONOTONIC: %w", err)
	}
	return time.Duration(ts.Nano()), nil
}
