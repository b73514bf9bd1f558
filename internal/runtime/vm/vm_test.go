// SPDX-License-Identifier: Apache-2.0

package vm_test

import (
	"testing"

	"github.com/drayage/dray/internal/guest"
	"github.com/drayage/dray/internal/runtime/runtimetest"
	"github.com/drayage/dray/internal/runtime/vm"
	"github.com/drayage/dray/internal/testenv"
)

func TestConformance(t *testing.T) {
	testenv.Root(t)
	testenv.Program(t, "perl", guest.Emulator, "depmod", "dpkg-deb")
	t.Setenv("DRAY_GUEST", testenv.Built(t, guest.AgentProgram))
	runtimetest.Run(t, runtimetest.Config{Runtime: vm.New(), Machine: true})
}
