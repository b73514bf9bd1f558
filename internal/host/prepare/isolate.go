// SPDX-License-Identifier: Apache-2.0

package prepare

import (
	"slices"
	"strings"

	"github.com/drayage/dray/internal/spec/cpulist"
	"github.com/drayage/dray/internal/spec/parse"
)

const cgroupRoot = "sys/fs/cgroup"

// fewestIsolated is the number of CPUs from which isolation is worth it: two ends of
// a link.
const fewestIsolated = 2

// DefaultIsolation is every CPU but the first two cores, with their sibling threads.
// It is empty if that leaves fewer than two.
func (s *System) DefaultIsolation() []int {
	online, err := s.cpus("online")
	if err != nil || len(online) < 2+fewestIsolated {
		return nil
	}
	others := slices.Clone(online[:2])
	for _, cpu := range online[:2] {
		others = append(others, s.siblings(cpu)...)
	}
	if free := cpulist.Without(online, others); len(free) >= fewestIsolated {
		return free
	}
	return nil
}

func (s *System) siblings(cpu int) []int {
	text, err := s.read("sys/devices/system/cpu/cpu" + cpulist.Format([]int{cpu}) + "/topology/thread_siblings_list")
	if err != nil {
		return nil
	}
	cpus, _ := cpulist.Parse(text) // an unreadable list has no sibling
	return cpus
}

// planIsolation keeps programs, interrupts and the kernel's own work off CPUs, as far
// as that is possible without a reboot.
func (s *System) planIsolation(report *Report, isolate []int) error {
	online, err := s.cpus("online")
	if err != nil {
		return err
	}
	if len(isolate) == 0 {
		report.skip("isolation", "no CPU is kept free: of %d CPUs, --isolate names none", len(online))
		return nil
	}
	others := cpulist.Without(online, isolate)
	if err := s.planPrograms(report, isolate, others); err != nil {
		return err
	}
	for _, kind := range []Kind{kindWork, kindInterrupts} {
		if err := s.planMask(report, Key{Kind: kind}, isolate, others); err != nil {
			return err
		}
	}
	for _, number := range s.numbers("proc/irq", "") {
		key := Key{Kind: kindInterrupt, Number: number}
		now, err := s.read(key.file())
		if err != nil {
			continue // it is gone, or has no affinity
		}
		report.want(key, now, without(now, isolate, others))
	}
	if s.irqbalanceRuns() {
		report.Notes = append(report.Notes, "irqbalance runs and may move interrupts back: set IRQBALANCE_BANNED_CPULIST="+cpulist.Format(isolate)+" in /etc/default/irqbalance, or stop it")
	}
	return nil
}

// without is a list of CPUs less those to keep free; the others if none is left.
func without(now string, isolate, others []int) string {
	cpus, err := cpulist.Parse(now)
	if err != nil {
		return now
	}
	if cpus = cpulist.Without(cpus, isolate); len(cpus) == 0 {
		cpus = others
	}
	return cpulist.Format(cpus)
}

func (s *System) planMask(report *Report, key Key, isolate, others []int) error {
	now, err := s.read(key.file())
	if missing(err) {
		report.skip(key.String(), "this kernel does not offer it")
		return nil
	}
	if err != nil {
		return err
	}
	to, err := maskWithout(now, isolate, others)
	if err != nil {
		return err
	}
	report.want(key, now, to)
	return nil
}

// planPrograms restricts systemd's slices, on a host whose only cgroup hierarchy is
// v2. Functions are elsewhere in it, and may still use every CPU.
func (s *System) planPrograms(report *Report, isolate, others []int) error {
	if !s.exists(cgroupRoot + "/cgroup.controllers") {
		report.skip("CPUs of programs", "no cgroup v2 hierarchy at /sys/fs/cgroup: only the boot command line keeps programs off CPUs")
		return nil
	}
	found := false
	for _, name := range programSlices {
		key := Key{Kind: kindSlice, Name: name}
		now, err := s.value(key)
		if missing(err) {
			continue
		}
		if err != nil {
			return err
		}
		found = true
		to := cpulist.Format(others)
		if now != "" {
			to = without(now, isolate, others)
		}
		report.want(key, now, to)
	}
	if !found {
		report.skip("CPUs of programs", "no slice of systemd has the controller cpuset: run `systemctl set-property --runtime system.slice AllowedCPUs=%s` first", cpulist.Format(others))
		return nil
	}
	if left := s.otherGroups(); len(left) > 0 {
		report.Notes = append(report.Notes, parse.All(left)+" may still run programs on CPUs "+cpulist.Format(isolate)+": what made them chooses their CPUs")
	}
	return nil
}

// otherGroups are the control groups with programs, other than systemd's slices and
// Drayage's own.
func (s *System) otherGroups() []string {
	var left []string
	for _, name := range s.names(cgroupRoot) {
		events, err := s.read(cgroupRoot + "/" + name + "/cgroup.events")
		if err != nil || strings.Contains(events, "populated 0") || slices.Contains(programSlices, name) || strings.HasPrefix(name, "dray") {
			continue
		}
		left = append(left, name)
	}
	return left
}

// irqbalanceRuns looks for its process.
func (s *System) irqbalanceRuns() bool {
	for _, pid := range s.names("proc") {
		if strings.Trim(pid, "0123456789") != "" {
			continue
		}
		if name, err := s.read("proc/" + pid + "/comm"); err == nil && name == "irqbalance" {
			return true
		}
	}
	return false
}
