// SPDX-License-Identifier: Apache-2.0

package prepare

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/drayage/dray/internal/host"
	"github.com/drayage/dray/internal/spec/cpulist"
	"github.com/drayage/dray/internal/spec/units"
)

// Kind is a sort of setting.
type Kind string

const (
	kindHugePages  Kind = "hugepages"
	kindGovernor   Kind = "governor"
	kindInterrupt  Kind = "interrupt"
	kindInterrupts Kind = "new interrupts"
	kindWork       Kind = "kernel work"
	kindSlice      Kind = "programs"
	kindDriver     Kind = "driver"
)

// Key names one setting. It holds no path: whatever a journal says, only the files
// that file and the functions of drivers name can be written.
type Key struct {
	Kind   Kind   `json:"kind"`
	Size   uint64 `json:"size,omitempty"`   // of huge pages, bytes
	Number int    `json:"number,omitempty"` // of a frequency policy or an interrupt
	Name   string `json:"name,omitempty"`   // of a slice, or a PCI address
}

func (k Key) String() string {
	switch k.Kind {
	case kindHugePages:
		return "hugepages " + units.Bytes(k.Size).String()
	case kindGovernor:
		return "governor of policy " + strconv.Itoa(k.Number)
	case kindInterrupt:
		return "CPUs of interrupt " + strconv.Itoa(k.Number)
	case kindInterrupts, kindWork:
		return "CPUs of " + string(k.Kind)
	case kindSlice:
		return "CPUs of " + k.Name
	}
	return string(k.Kind) + " of " + k.Name
}

// slices of systemd that hold every program that is no container of an engine with a
// hierarchy of its own.
var programSlices = []string{"init.scope", "system.slice", "user.slice"}

const possibleCPUs = "sys/devices/system/cpu/possible"

var (
	driverName   = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)
	governorName = regexp.MustCompile(`^[a-z_]{1,16}$`)
	maskText     = regexp.MustCompile(`^[0-9a-f]{1,8}(,[0-9a-f]{8})*$`)
)

// check refuses a key that names no setting.
func (k Key) check() error {
	ok := false
	switch k.Kind {
	case kindHugePages:
		ok = k.Size >= 1<<10 && k.Number == 0 && k.Name == ""
	case kindGovernor, kindInterrupt:
		ok = k.Number >= 0 && k.Size == 0 && k.Name == ""
	case kindInterrupts, kindWork:
		ok = k == Key{Kind: k.Kind}
	case kindSlice:
		ok = slices.Contains(programSlices, k.Name) && k.Size == 0 && k.Number == 0
	case kindDriver:
		ok = host.IsPCIAddress(k.Name) && k.Size == 0 && k.Number == 0
	}
	if !ok {
		return fmt.Errorf("%+v is no setting that dray changes", k)
	}
	return nil
}

// file is the kernel's file of a setting that has one.
func (k Key) file() string {
	switch k.Kind {
	case kindHugePages:
		return fmt.Sprintf("sys/kernel/mm/hugepages/hugepages-%dkB/nr_hugepages", k.Size>>10)
	case kindGovernor:
		return fmt.Sprintf("sys/devices/system/cpu/cpufreq/policy%d/scaling_governor", k.Number)
	case kindInterrupt:
		return fmt.Sprintf("proc/irq/%d/smp_affinity_list", k.Number)
	case kindInterrupts:
		return "proc/irq/default_smp_affinity"
	case kindWork:
		return "sys/devices/virtual/workqueue/cpumask"
	}
	return cgroupRoot + "/" + k.Name + "/cpuset.cpus"
}

// legal refuses a value that no setting of this kind has.
func (k Key) legal(value string) error {
	ok := false
	switch k.Kind {
	case kindHugePages:
		_, err := strconv.ParseUint(value, 10, 31)
		ok = err == nil
	case kindGovernor:
		ok = governorName.MatchString(value)
	case kindInterrupt:
		cpus, err := cpulist.Parse(value)
		ok = err == nil && len(cpus) > 0
	case kindInterrupts, kindWork:
		ok = maskText.MatchString(value)
	case kindSlice: // an empty list means all CPUs
		_, err := cpulist.Parse(value)
		ok = err == nil
	case kindDriver:
		name := strings.TrimSuffix(value, overridden)
		ok = name == noDriver || driverName.MatchString(name)
	}
	if !ok {
		return fmt.Errorf("%s: %q is no value of it", k, value)
	}
	return nil
}

// value is what the setting is now. A slice with all CPUs is as good as one without a
// list.
func (s *System) value(k Key) (string, error) {
	if k.Kind == kindDriver {
		return s.driver(k.Name)
	}
	now, err := s.read(k.file())
	if k.Kind != kindSlice || err != nil {
		return now, err
	}
	if all, err := s.read(possibleCPUs); err == nil && now == all {
		return "", nil
	}
	return now, nil
}

// change gives the setting a value.
func (s *System) change(k Key, value string) error {
	if err := k.check(); err != nil {
		return err
	}
	if err := k.legal(value); err != nil {
		return err
	}
	if k.Kind == kindDriver {
		return s.changeDriver(k.Name, value)
	}
	err := s.set(k.file(), value)
	if k.Kind == kindSlice && value == "" && errors.Is(err, unix.ENOSPC) { // a slice with programs keeps a list
		all, err := s.read(possibleCPUs)
		if err != nil {
			return err
		}
		return s.set(k.file(), all)
	}
	return err
}

// between reports whether a change from one value to another, cut short, can have
// left this one.
func (k Key) between(from, to, now string) bool {
	switch k.Kind {
	case kindHugePages:
		var n [3]uint64
		for i, text := range []string{from, now, to} {
			n[i], _ = strconv.ParseUint(text, 10, 31) // legal
		}
		return min(n[0], n[2]) <= n[1] && n[1] <= max(n[0], n[2])
	case kindDriver: // with or without driver_override
		names := []string{noDriver, strings.TrimSuffix(from, overridden), strings.TrimSuffix(to, overridden)}
		return slices.Contains(names, strings.TrimSuffix(now, overridden))
	}
	return false
}
