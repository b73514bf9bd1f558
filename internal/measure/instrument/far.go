// SPDX-License-Identifier: Apache-2.0

package instrument

import (
	"context"
	"math/rand/v2"
	"os/exec"
	"time"
)

// Far is how to run draygen where a port is, if that is on another machine.
type Far struct {
	// Machine has the port. Programs of one machine read one clock.
	Machine string
	Draygen string // the program's path there
	Version string // what it reports
	// Command is a process on this machine that represents a program there: it passes
	// the program's output on, and ends with it. A signal may end only the process.
	Command func(argv []string) *exec.Cmd
}

// farLinger is how long the output of a far program may be on its way.
const farLinger = 5 * time.Second

// machineOf names the far machine; "": this one.
func (e Endpoint) machineOf() string {
	if e.Far == nil {
		return ""
	}
	return e.Far.Machine
}

// genProgram is the port's generator, and its version.
func genProgram(ctx context.Context, e Endpoint) (path, version string, err error) {
	if e.Far != nil {
		return e.Far.Draygen, e.Far.Version, nil
	}
	return genTool(e).find(ctx)
}

// farPort is a UDP port of a far machine. It is not asked whether that port is free: where
// draygen takes the place of a function, nothing else has one.
func farPort() uint16 { return uint16(firstPort + rand.IntN(lastPort-firstPort)) }
