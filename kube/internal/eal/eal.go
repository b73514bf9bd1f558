// SPDX-License-Identifier: Apache-2.0

// Package eal tells a DPDK application in a pod how to open its ports. dray-node
// puts what the pod's spec says into the environment of the container. The
// program dray-eal adds what only the container knows, its CPUs and its DPDK,
// and starts the application with EAL's arguments.
package eal

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/drayage/dray/internal/host"
	"github.com/drayage/dray/internal/spec/chain"
	"github.com/drayage/dray/internal/spec/dpdk"
	"github.com/drayage/dray/internal/spec/units"
)

// Variable is the environment variable that holds a container's Setting.
const Variable = "DRAY_DPDK"

// Paths in a container with dpdk ports, both read-only: the program dray-eal,
// and the drivers, each in a folder named after its DPDK ABI number.
const (
	ProgramsInside = "/run/dray/bin"
	DriversInside  = dpdk.LibInside
	Program        = "dray-eal"
)

// SeccompProfile is the seccomp profile of each node that permits huge pages to
// EAL, as a pod names it in localhostProfile.
const SeccompProfile = "drayage/dpdk.json"

// Setting is what a node knows of a DPDK application when its pod starts.
type Setting struct {
	Memory    units.Bytes       `json:"memory,omitempty"` // limit; 0: none
	HugePages []chain.HugePages `json:"huge_pages,omitempty"`
	CPUs      int               `json:"cpus,omitempty"` // limit, rounded up; 0: none
	// Whole says that a kubelet with a static CPU manager gives the container
	// so many CPUs of its own.
	Whole bool        `json:"whole,omitempty"`
	Vdevs []dpdk.Vdev `json:"vdevs"` // in the order of the function's ports
}

// Env is the setting as a container's environment has it.
func (s Setting) Env() (string, error) {
	text, err := json.Marshal(s)
	return Variable + "=" + string(text), err
}

// errNoPorts says that a container has no dpdk ports.
var errNoPorts = errors.New("this container has no dpdk ports: name the claim of its function in resources.claims")

// parse reads a setting from the environment.
func parse(text string) (Setting, error) {
	var s Setting
	if text == "" {
		return s, errNoPorts
	}
	if err := json.Unmarshal([]byte(text), &s); err != nil {
		return s, fmt.Errorf("%s: %w", Variable, err)
	}
	if len(s.Vdevs) == 0 {
		return s, errNoPorts
	}
	return s, nil
}

// application is the container's DPDK application on those CPUs. Its threads
// are pinned if the CPUs are its own.
func (s Setting) application(cpus []int, nodes int, driver string) dpdk.Application {
	return dpdk.Application{
		Memory: s.Memory, HugePages: s.HugePages, Vdevs: s.Vdevs,
		CPUs: cpus, Pinned: s.Whole && len(cpus) == s.CPUs, Lcores: s.CPUs, Nodes: nodes,
		Driver: driver, Ports: portsInside,
	}
}

// Check says early what an application would say when it starts.
func (s Setting) Check() error {
	_, err := s.application([]int{0}, 1, DriversInside).EAL()
	return err
}

// Warning is why EAL may not start here; "" if nothing is known. EAL binds huge
// pages to NUMA nodes, which the default profiles of container runtimes refuse.
func Warning() string {
	s, err := parse(os.Getenv(Variable))
	if err != nil || len(s.HugePages) == 0 {
		return ""
	}
	if _, _, errno := unix.Syscall6(unix.SYS_GET_MEMPOLICY, 0, 0, 0, 0, 0, 0); errno != unix.EPERM {
		return ""
	}
	return "the pod's seccomp profile refuses mbind, set_mempolicy and get_mempolicy, so EAL gets no huge pages: " +
		"set seccompProfile: {type: Localhost, localhostProfile: " + SeccompProfile + "}"
}

// portsInside is where a container has the sockets of its ports.
const portsInside = "/run/dray/ports"

// read reads the setting of this container; only: with the device of this port alone.
func read(only string) (Setting, error) {
	s, err := parse(os.Getenv(Variable))
	if err != nil || only == "" {
		return s, err
	}
	i := slices.IndexFunc(s.Vdevs, func(v dpdk.Vdev) bool { return v.Port == only })
	if i < 0 {
		return s, fmt.Errorf("this container has no dpdk port %s", only)
	}
	s.Vdevs = s.Vdevs[i : i+1]
	return s, nil
}

// Arguments are EAL's arguments for a program of this container. stay says that the program
// must be started by Attend. only is the program's only port; "": it has all.
func Arguments(program, only string) (arguments []string, stay bool, err error) {
	s, err := read(only)
	if err != nil {
		return nil, false, err
	}
	cpus, err := host.AllowedCPUs()
	if err != nil {
		return nil, false, err
	}
	app := s.application(cpus, host.NUMANodes(), "")
	if app.NeedsDriver() {
		if app.Driver, err = driver(program); err != nil {
			return nil, false, err
		}
	}
	arguments, err = app.EAL()
	return arguments, s.Attended(), err
}
