// SPDX-License-Identifier: Apache-2.0

// Package prepare changes the settings of this host that fast packet processing
// needs, and puts them back: huge pages, the CPUs that other programs and interrupts
// use, the frequency governor, and the driver of network cards. A journal holds each
// former value before the setting changes.
package prepare

import (
	"fmt"
	"slices"

	"github.com/drayage/dray/internal/spec/cpulist"
)

// Request says what to prepare.
type Request struct {
	HugePages []Pages
	Isolate   []int    // CPUs to keep free
	Governor  string   // empty: leave it
	Bind      []string // network cards, by interface or PCI address
}

// Pages is the number of huge pages of one size that the host should have.
type Pages struct {
	Size  uint64 // bytes
	Count int
}

// Change is a setting that differs from what was asked for.
type Change struct {
	Key     Key     `json:"-"`
	Setting string  `json:"setting"`
	From    string  `json:"from"`
	To      string  `json:"to"`
	Outcome Outcome `json:"outcome"`
	Reason  string  `json:"reason,omitempty"`
}

// Outcome is what became of a change.
type Outcome string

const (
	Planned  Outcome = "planned"
	Changed  Outcome = "changed"
	Partly   Outcome = "partly"   // the kernel gave less
	Left     Outcome = "left"     // it is not ours to change; see the reason
	Failed   Outcome = "failed"   // see the reason
	Restored Outcome = "restored" // it has its former value
)

// Skip is a part of the preparation that has nothing to change.
type Skip struct {
	Part   string `json:"part"`
	Reason string `json:"reason"`
}

// Boot is what only the kernel's command line can set.
type Boot struct {
	Arguments string `json:"arguments"`
	Fix       string `json:"fix"` // where to put them
}

// Report is a preparation, planned, done or undone.
type Report struct {
	Changes []Change `json:"changes"`
	Skipped []Skip   `json:"skipped"`
	Boot    *Boot    `json:"boot,omitempty"`
	Notes   []string `json:"notes,omitempty"`
}

func (r *Report) skip(part, format string, a ...any) {
	r.Skipped = append(r.Skipped, Skip{part, fmt.Sprintf(format, a...)})
}

// want adds a change, unless the setting already has the value.
func (r *Report) want(k Key, from, to string) {
	if from != to {
		r.Changes = append(r.Changes, Change{Key: k, Setting: k.String(), From: from, To: to, Outcome: Planned})
	}
}

// refuse adds a change that is not made.
func (r *Report) refuse(k Key, from, to, format string, a ...any) {
	r.Changes = append(r.Changes, Change{Key: k, Setting: k.String(), From: from, To: to, Outcome: Left, Reason: fmt.Sprintf(format, a...)})
}

// Plan compares the request with this host. It changes nothing. What the request
// names and this host must not change is an error; what this host lacks is skipped.
func (s *System) Plan(r Request) (*Report, error) {
	report := &Report{Changes: []Change{}, Skipped: []Skip{}}
	if err := s.checkCPUs(r.Isolate); err != nil {
		return nil, err
	}
	if err := s.planHugePages(report, r.HugePages); err != nil {
		return nil, err
	}
	if err := s.planGovernor(report, r.Governor); err != nil {
		return nil, err
	}
	if err := s.planIsolation(report, r.Isolate); err != nil {
		return nil, err
	}
	if err := s.planDrivers(report, r.Bind); err != nil {
		return nil, err
	}
	report.Boot = s.boot(r)
	return report, nil
}

// checkCPUs refuses CPUs that cannot be kept free.
func (s *System) checkCPUs(isolate []int) error {
	online, err := s.cpus("online")
	if err != nil {
		return err
	}
	for _, cpu := range isolate {
		if !slices.Contains(online, cpu) {
			return fmt.Errorf("CPU %d is not online: choose from %s", cpu, cpulist.Format(online))
		}
		if cpu == 0 {
			return fmt.Errorf("CPU 0 cannot be kept free: the kernel itself needs it; choose from %s", cpulist.Format(cpulist.Without(online, []int{0})))
		}
	}
	return nil
}

// cpus is a list of CPUs as the kernel reports it: "online", "isolated".
func (s *System) cpus(name string) ([]int, error) {
	text, err := s.read("sys/devices/system/cpu/" + name)
	if err != nil {
		return nil, err
	}
	return cpulist.Parse(text)
}
