// SPDX-License-Identifier: Apache-2.0

package vm_test

import (
	"os"
	"testing"
	"time"

	"github.com/drayage/dray/internal/function/guest"
	"github.com/drayage/dray/internal/function/runtimetest"
	"github.com/drayage/dray/internal/function/vm"
	"github.com/drayage/dray/internal/spec/chain"
	"github.com/drayage/dray/test/testenv"
)

// few are the tests that run without DRAY_TEST_MACHINES=all. An emulator needs
// five seconds of both CPUs for each machine, and package guest tests the rest on
// one machine.
var few = []string{
	"the sandbox is there before anything starts",
	"ports are plumbed into the sandbox",
	"instruments run in the sandbox",
	"a failing step leaves nothing",
	"an identical sandbox comes up again",
	"exec beside the command",
	"stop kills stubborn processes",
	"removal kills a running command",
}

func TestConformance(t *testing.T) {
	testenv.Root(t)
	testenv.Program(t, "perl", guest.Emulator, "depmod")
	t.Setenv("DRAY_GUEST", testenv.Built(t, guest.AgentProgram))
	runtimetest.Patience = 3 * time.Minute
	c := runtimetest.Config{Runtime: vm.New(), Machine: true, Only: few}
	all := os.Getenv("DRAY_TEST_MACHINES") == "all"
	if all {
		c.Only = nil
	}
	runtimetest.Run(t, c)
	if !all {
		return
	}
	c.Function = func(*testing.T) chain.Function {
		return chain.Function{VM: &chain.VM{Kernel: chain.VMKernelGeneric, Runtime: chain.RuntimeRunc}}
	}
	t.Run("in-containers", func(t *testing.T) {
		testenv.Program(t, "runc")
		runtimetest.Run(t, c)
	})
}
