// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/drayage/dray/internal/guest"
	"github.com/drayage/dray/internal/record"
	"github.com/drayage/dray/internal/testenv"
)

// TestVirtualMachine brings up a function in a virtual machine, looks into it,
// measures its link, and takes it down. It boots once.
//
//	runc              vm
//	+-----+  bridge  +-----+
//	| gnb n3========n3 upf |
//	+-----+          +-----+
func TestVirtualMachine(t *testing.T) {
	testenv.Program(t, guest.Emulator, "depmod")
	b := newBench(t)
	b.env = append(b.env, "DRAY_GUEST="+testenv.Built(t, guest.AgentProgram))
	b.want(0, "up", example("vm.yaml"))
	inside := b.want(0, "exec", "vm", "upf", "--", "sh", "-c", "uname -r; ip -4 -o addr show n3; cat /sys/class/net/n3/mtu")
	info, err := guest.ReadInfo(filepath.Join(b.state, "vm", "fn", "upf", "guest"))
	if err != nil {
		t.Fatal(err)
	}
	if !info.Process.Alive() {
		t.Error("the machine does not run")
	}
	for _, want := range []string{info.Kernel + "\n", "10.61.0.2/24", "\n1500\n"} {
		if !strings.Contains(inside.Stdout, want) {
			t.Errorf("in the machine there is no %q: %s", want, inside)
		}
	}
	out := filepath.Join(t.TempDir(), "out")
	verified := b.dray("verify", "vm", "--profile", "quick", "--out", out)
	if !strings.Contains(verified.Stdout, "1500 B passed") {
		t.Errorf("verify: %s", verified)
	}
	trials, _, err := record.ReadFile(filepath.Join(out, "records.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	if len(trials) == 0 {
		t.Fatal("no trial was made")
	}
	for _, trial := range trials {
		if trial.Error != "" {
			t.Errorf("%s from %s: %s", trial.Quantity, trial.From, trial.Error)
		}
		if slices.Contains(trial.Marks, record.MarkEmulated) != (info.Accel == guest.TCG) {
			t.Errorf("%s on a machine with %s has the marks %v", trial.Quantity, info.Accel, trial.Marks)
		}
		if trial.OneWay != nil {
			t.Errorf("%s: stamps of two machines were compared", trial.Quantity)
		}
	}
	b.want(0, "down", "vm")
	if info.Process.Alive() {
		t.Error("the machine outlives its chain")
	}
}
