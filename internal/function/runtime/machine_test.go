// SPDX-License-Identifier: Apache-2.0

package runtime

import (
	"fmt"
	"strings"
	"testing"

	"github.com/drayage/dray/internal/spec/chain"
	"github.com/drayage/dray/internal/spec/dpdk"
)

// TestMachineApplication: PCI slots follow the function's ports, not link creation
// order, and EAL numbers them so; interfaces have none; the first virtual CPU is
// free.
func TestMachineApplication(t *testing.T) {
	s := Spec{Function: chain.Function{
		Name: "upf", Runtime: chain.RuntimeVM, HugePages: []chain.HugePages{{Size: 2 << 20, Limit: 64 << 20}},
		Ports: []chain.Port{{Name: "n3", Face: chain.FaceDPDK}, {Name: "n4", Face: chain.FaceNetdev}, {Name: "n6", Face: chain.FaceDPDK}},
	}}
	for _, port := range []string{"n6", "n4", "n3"} {
		s.Vdevs = append(s.Vdevs, dpdk.Vdev{Port: port, Driver: dpdk.NetVirtio, Interface: &dpdk.Interface{}})
	}
	for _, c := range []struct {
		cpus   []int
		lcores string
	}{{nil, "0@1,1@1"}, {[]int{7}, "0@1,1@1"}, {[]int{3, 5, 7}, "0@1,1@2"}} {
		s.CPUs = c.cpus
		_, argv, err := s.Resolve([]string{"app", dpdk.Argument, "--"}, true)
		want := "app --in-memory --single-file-segments --socket-limit 64 --iova-mode=pa --no-telemetry --lcores " + c.lcores + " -a 0000:00:1e.0 -a 0000:00:1d.0 --"
		if err != nil || strings.Join(argv, " ") != want {
			t.Errorf("on %v (%v):\ngot  %s\nwant %s", c.cpus, err, strings.Join(argv, " "), want)
		}
	}
	for port, want := range map[string]int{"n3": lastSlot - 1, "n6": lastSlot} {
		if slot, err := s.MachineSlot(port); err != nil || slot != want {
			t.Errorf("%s is at %#x (%v), not at %#x", port, slot, err, want)
		}
	}
	s.Function.Ports = s.Function.Ports[1:2]
	if got, argv, err := s.Resolve([]string{"app"}, true); err != nil || len(argv) != 1 || got.Function.Env[dpdk.Variable] != "" {
		t.Errorf("a function without dpdk ports: %v, %v, %v", got.Function.Env, argv, err)
	}
}

// TestMachineSlots: ports beyond the bus's capacity are refused.
func TestMachineSlots(t *testing.T) {
	s := Spec{Function: chain.Function{Name: "f", Runtime: chain.RuntimeVM}}
	for i := range maxMachinePorts {
		s.Function.Ports = append(s.Function.Ports, chain.Port{Name: fmt.Sprint("p", i), Face: chain.FaceDPDK})
	}
	if slot, err := s.MachineSlot("p0"); err != nil || slot != lastSlot-maxMachinePorts+1 {
		t.Errorf("the first of many: %d, %v", slot, err)
	}
	if _, err := s.MachineSlot("q0"); err == nil || !strings.Contains(err.Error(), "no dpdk port q0") {
		t.Errorf("a missing port: %v", err)
	}
	s.Function.Ports = append(s.Function.Ports, chain.Port{Name: "more", Face: chain.FaceDPDK})
	if _, err := s.MachineSlot("p0"); err == nil || !strings.Contains(err.Error(), "at most 14") {
		t.Errorf("one too many: %v", err)
	}
}
