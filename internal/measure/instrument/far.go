// SPDX-License-Identifier: Apache-2.0

package instrument

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os/exec"
	"strconv"
	"time"
)

// Far is how to measure at a port on another machine. Draygen and Iperf3 can.
type Far struct {
	// Machine has the port. Programs of one machine read one clock.
	Machine string
	// Programs are those there, by their names on this machine.
	Programs map[string]FarProgram
	// StartsFirst says that a program at the link's other end can start only once one at
	// this port has opened it.
	StartsFirst bool
	// Command is a process on this machine that represents a program there: it passes
	// the program's input and output on, and ends with it. A signal may end only the process.
	Command func(argv []string) *exec.Cmd
}

// FarProgram is a program of another machine.
type FarProgram struct {
	Argv    []string // the program, or what starts it
	Version string   // what it reports
	Missing error    // why it cannot be used; nil: it can
}

// farPatience is how long a far program may take to start: a busy machine takes many seconds.
const farPatience = time.Minute

// machineOf names the far machine; "": this one.
func (e Endpoint) machineOf() string {
	if e.Far == nil {
		return ""
	}
	return e.Far.Machine
}

// findAt is the program at an endpoint, and its version.
func (t tool) findAt(ctx context.Context, e Endpoint) (argv []string, version string, err error) {
	if e.Far == nil {
		path, version, err := t.find(ctx)
		return []string{path}, version, err
	}
	p, known := e.Far.Programs[t.name]
	if !known {
		return nil, "", fmt.Errorf("the program %s does not exist on %s", t.name, e.Far.Machine)
	}
	return p.Argv, p.Version, p.Missing
}

// farPort is a UDP or TCP port of a far machine. It is not asked whether that port is free: where
// draygen takes the place of a function, nothing else has one.
func farPort() uint16 { return uint16(firstPort + rand.IntN(lastPort-firstPort)) }

// bounded is a command that ends by itself after d, by coreutils' timeout: if its connection
// breaks, no signal reaches a program of another machine.
func (e Endpoint) bounded(d time.Duration, argv []string) []string {
	if e.Far == nil {
		return argv
	}
	return append([]string{"timeout", "--signal=KILL", strconv.Itoa(wholeSeconds(d))}, argv...)
}
