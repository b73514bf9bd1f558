// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"path/filepath"
	"testing"

	"github.com/drayage/dray/internal/function/guest"
	"github.com/drayage/dray/test/testenv"
)

// machinesYAML is two machines, one of which also shares memory with a container.
const machinesYAML = `apiVersion: drayage/v1
kind: Chain
name: machines
functions:
  - {name: a, runtime: vm, memory: 128Mi, ports: [{name: p0, face: native}, {name: p1, face: native}]}
  - {name: b, runtime: vm, memory: 128Mi, ports: [{name: p0, face: native}]}
  - {name: c, runtime: runc, ports: [{name: p0, face: native}]}
links:
  - {name: ab, ends: [a.p0, b.p0]}
  - {name: ac, ends: [a.p1, c.p0]}
`

// TestMemoryBetweenMachines: two machines, and a machine and a container, share the memory of
// a link, which is a PCI device in a machine. Packets pass whole and in order. A machine that
// is killed boots again, and meets the other in new memory. It boots three times.
//
//	vm               vm
//	+----+   shm   +----+
//	| a p0========p0 b  |
//	|   p1====+    +----+
//	+----+    |    +----+
//	          +===p0 c  | runc
//	               +----+
func TestMemoryBetweenMachines(t *testing.T) {
	testenv.Program(t, guest.Emulator, "depmod", "runc")
	draygen := generator(t)
	b := newBench(t)
	b.env = append(b.env, "DRAY_GUEST="+testenv.Built(t, guest.AgentProgram))
	b.want(0, "up", b.file(machinesYAML))
	defer b.want(0, "down", "machines")
	whole := func(from, to string) {
		t.Helper()
		got := b.between("machines", draygen, from, to, "5000", "2kpps", nil)
		if got.Received != 5000 || got.Corrupt+got.Duplicates+got.Reordered > 0 || got.Link.Kind != "shm" {
			t.Errorf("from %s to %s the sink saw %+v", from, to, got)
		}
	}
	whole("a.p0", "b.p0")
	whole("c.p0", "a.p1")
	whole("a.p1", "c.p0")
	info, err := guest.ReadInfo(filepath.Join(b.state, "machines", "fn", "b", "guest"))
	if err != nil {
		t.Fatal(err)
	}
	info.Process.Kill()
	whole("b.p0", "a.p0")
}
