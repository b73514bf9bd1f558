// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/drayage/dray/internal/spec/cpulist"
	"github.com/drayage/dray/internal/spec/inventory"
	"github.com/drayage/dray/internal/spec/layout"
)

// Text writes an inventory for people: the host's facts, its abilities, fixes for
// missing ones, and what spoils measurements. Lines fit into width; 0 means no
// limit.
func Text(w io.Writer, inv *inventory.Inventory, width int) error {
	var b bytes.Buffer
	var t layout.Table
	for _, fact := range facts(inv.Host) {
		t.Add(fact[0], fact[1])
	}
	t.Add("uplinks", interfaces(inv.Interfaces))
	calibration := calibrated(inv.Calibration, inv.Host.Time)
	if inv.CalibrationFault != "" {
		calibration = []string{"not used: " + inv.CalibrationFault}
	}
	for i, line := range calibration {
		name := "calibration"
		if i > 0 {
			name = ""
		}
		t.Add(name, line)
	}
	if err := t.Write(&b, width); err != nil {
		return err
	}
	transports := make([]inventory.Item, len(inv.Transports))
	for i := range inv.Transports {
		transports[i] = inv.Transports[i].Item
	}
	for _, section := range []struct {
		title string
		items []inventory.Item
	}{
		{"Transports", transports}, {"Runtimes", inv.Runtimes}, {"DPDK", inv.DPDK}, {"Protections", inv.Protections}, {"Protocols", inv.Protocols}, {"Qdiscs", inv.Qdiscs}, {"Instruments", inv.Instruments},
	} {
		if len(section.items) == 0 {
			continue // older inventories lack it
		}
		if err := writeItems(&b, width, section.title, section.items); err != nil {
			return err
		}
	}
	if warnings := Warnings(inv.Host); len(warnings) > 0 {
		b.WriteString("\nWarnings\n")
		for _, warning := range warnings {
			b.WriteString(strings.Join(layout.Wrap("  "+warning, width), "\n") + "\n")
		}
	}
	_, err := w.Write(b.Bytes())
	return err
}

func facts(h inventory.Host) [][2]string {
	kernel := h.Kernel
	if h.Realtime {
		kernel += ", PREEMPT_RT"
	}
	return [][2]string{
		{"host", h.Hostname + ", " + h.OS},
		{"kernel", kernel + ", " + h.Arch},
		{"cpu", h.CPUModel},
		{"cores", fmt.Sprintf("%d (%s), isolated %s, governor %s, %s", len(h.CPUs), cpulist.Format(h.CPUs),
			orNone(cpulist.Format(h.Isolated)), h.Governor, count(h.NUMANodes, "NUMA node"))},
		{"load", fmt.Sprintf("%.2f (1 minute)", h.Load1)},
		{"memory", fmt.Sprintf("%s, %s available", size(h.MemoryTotal), size(h.MemoryFree))},
		{"hugepages", hugePages(h.HugePages)},
		{"cgroup", h.Cgroup},
		{"virtual", orNone(h.Virtual)},
	}
}

func writeItems(w io.Writer, width int, title string, items []inventory.Item) error {
	fmt.Fprintf(w, "\n%s\n", title)
	var t layout.Table
	for _, item := range items {
		t.Add("  "+item.Name, status(item), explanation(item))
	}
	return t.Write(w, width)
}

func status(item inventory.Item) string {
	switch {
	case item.Untried():
		return item.Reason
	case item.Status == inventory.NeverRun:
		return "never run here"
	}
	return string(item.Status)
}

// explanation is one line: the version of a usable item, or the reason and fix of a
// missing one.
func explanation(item inventory.Item) string {
	text := item.Version
	if !item.Usable() {
		text = item.Reason
		if item.Fix != "" {
			text += "; fix: " + item.Fix
		}
	}
	return strings.Join(strings.Fields(text), " ")
}

func interfaces(all []inventory.Interface) string {
	var parts []string
	for _, i := range all {
		state := "down"
		if i.Up {
			state = "up"
		}
		parts = append(parts, fmt.Sprintf("%s (%s, MTU %d, %s)", i.Name, i.Kind, i.MTU, state))
	}
	return orNone(strings.Join(parts, ", "))
}

// calibrated is a line per transport, with its age; for stale evidence also the
// reason.
func calibrated(all []inventory.Calibration, now time.Time) []string {
	var lines []string
	for _, c := range all {
		line := fmt.Sprintf("%s (%s", c.Transport, c.Measured.Format("2006-01-02 15:04"))
		if age := c.Age(now); age != "" {
			line += ", " + age
		}
		line += ")"
		if c.Stale != "" {
			line += fmt.Sprintf(": not used, because %s; fix: dray calibrate %s", c.Stale, c.Transport)
		}
		lines = append(lines, line)
	}
	if len(lines) == 0 {
		return []string{"none: plans use stated defaults"}
	}
	return lines
}

func hugePages(all []inventory.HugePg) string {
	var parts []string
	for _, p := range all {
		parts = append(parts, fmt.Sprintf("%d of %d free of %s", p.Free, p.Total, size(p.Size)))
	}
	return orNone(strings.Join(parts, ", "))
}

// size is a number of bytes to one decimal place, in binary units.
func size(bytes uint64) string {
	value, unit := float64(bytes), 0
	units := []string{"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"}
	for value >= 1024 && unit < len(units)-1 {
		value /= 1024
		unit++
	}
	return strings.TrimSuffix(fmt.Sprintf("%.1f", value), ".0") + " " + units[unit]
}

func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

func orNone(s string) string {
	if s == "" {
		return "none"
	}
	return s
}
