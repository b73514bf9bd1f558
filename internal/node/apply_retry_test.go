// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/drayage/dray/internal/host"
	"github.com/drayage/dray/internal/host/step"
	"github.com/drayage/dray/internal/spec/chain"
	"github.com/drayage/dray/internal/spec/inventory"
)

// twinYAML is the pair with a second link between the same functions.
var twinYAML = strings.NewReplacer(
	`mac: "02:00:00:00:01:01"}]}`, `mac: "02:00:00:00:01:01"}, {name: p1, ip: 10.2.0.1/24, mac: "02:00:00:00:02:01"}]}`,
	`mac: "02:00:00:00:01:02"}]}`, `mac: "02:00:00:00:01:02"}, {name: p1, ip: 10.2.0.2/24, mac: "02:00:00:00:02:02"}]}`,
	"links:\n", "links:\n  - {name: cd, ends: [a.p1, b.p1], transport: bridge}\n").Replace(pairYAML)

// A replacement of links between functions that stay can be applied again after a
// failure at any step, and completes.
func TestApplyAgainRepairsReplacedLinks(t *testing.T) {
	n := newNode(t)
	supervisedPair(t, n)
	transports := []string{"bridge", "veth"}
	if what, err := applied(t, n, twinYAML); err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	for i, at := range []step.Phase{step.Before, step.After} {
		to := strings.ReplaceAll(twinYAML, "transport: bridge", "transport: "+transports[(i+1)%2])
		applyPastFaults(t, n, at, to)
		wantPings(t, n, "10.1.0.2", "10.2.0.2")
	}
}

// wantPings checks that function a of the pair reaches addresses.
func wantPings(t *testing.T, n *Node, addresses ...string) {
	t.Helper()
	l, err := n.Open("pair")
	if err != nil {
		t.Fatal(err)
	}
	for _, address := range addresses {
		if out, err := exec.Command("nsenter", "--net="+l.State.Sandboxes["a"].Netns.Path, "ping", "-c1", "-W5", address).CombinedOutput(); err != nil {
			t.Errorf("%s is not reached: %v: %s", address, err, out)
		}
	}
}

// A plan keeps the CPUs of what stays, and no more.
func TestPinKeepsCPUs(t *testing.T) {
	three := strings.NewReplacer("name: a, runtime", "name: a, cpus: 1, runtime", "name: b, runtime", "name: b, cpus: 2, runtime").Replace(pairYAML)
	l := &Live{}
	l.Chain, l.State.Plan = planned(t, three)
	l.State.Plan.Functions[0].CPUs, l.State.Plan.Functions[1].CPUs = []int{3}, []int{4, 5}
	l.State.Plan.Links[0].CPUs = []int{6}
	c, _ := planned(t, strings.Replace(three, "cpus: 2", "cpus: 1", 1))
	l.Pin(c, false)
	if a, b := c.Functions[0].CPUs, c.Functions[1].CPUs; !slices.Equal(a.Set, []int{3}) || a.Count != 0 || len(b.Set) > 0 || b.Count != 1 {
		t.Errorf("a asks for %+v, b for %+v", a, b)
	}
	if held := l.HeldCPUs(c); !slices.Equal(held.Links["ab"], []int{6}) {
		t.Errorf("held: %v", held)
	}
	c.Links[0].Transport = "veth"
	if held := l.HeldCPUs(c).Links; len(held) > 0 {
		t.Errorf("of a link over another transport is held: %v", held)
	}
}

// A change gets no CPU of another chain, and reserves its own before it begins.
func TestApplyClaimsItsCPUs(t *testing.T) {
	ctx, n := context.Background(), newNode(t)
	supervisedPair(t, n)
	other, theirs := pair(t)
	other.Name, theirs.Functions[0].CPUs = "other", []int{1}
	text := strings.Replace(pairYAML, "name: pair", "name: other", 1)
	l, err := n.Create(ctx, "up", other, []byte(text), theirs)
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Commit(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if _, err := n.Down(ctx, "other"); err != nil {
			t.Error(err)
		}
	}()
	grow := func(cpu int) error {
		c, p := planned(t, grownYAML)
		p.Function("c").CPUs = []int{cpu}
		l, err := n.OpenLocked(ctx, "pair")
		if err != nil {
			t.Fatal(err)
		}
		return errors.Join(l.Apply(ctx, c, []byte(grownYAML), p, l.Difference(c, p, Wrong{}), 0), l.Release())
	}
	if err := grow(1); err == nil || !strings.Contains(err.Error(), "CPU 1 was given to chain other") {
		t.Errorf("it takes a CPU of another chain: %v", err)
	}
	n.Fault = func(step.Step, step.Phase) error { return errors.New("injected") }
	if err := grow(0); err == nil {
		t.Error("no fault was injected")
	}
	n.Fault = nil
	if claimed, err := n.claims(""); err != nil || !slices.Equal(claimed.cpus["pair"], []int{0}) {
		t.Errorf("a failed change has claimed %v, %v", claimed, err)
	}
	if err := grow(0); err != nil {
		t.Error(err)
	}
}

// Functions that a change does not start need not run.
func TestApplySettlesOnlyWhatItStarts(t *testing.T) {
	n := newNode(t)
	supervisedPair(t, n)
	l, err := n.Open("pair")
	if err != nil {
		t.Fatal(err)
	}
	functions, _, err := l.Status()
	if err != nil {
		t.Fatal(err)
	}
	if !functions[0].Process.Signal(syscall.SIGKILL) {
		t.Fatal("function a has no process")
	}
	for end := time.Now().Add(patience); functions[0].Phase == PhaseRunning && time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		if functions, _, err = l.Status(); err != nil {
			t.Fatal(err)
		}
	}
	if what, err := applied(t, n, strings.Replace(pairYAML, "transport: bridge", "transport: bridge, requires: {latency: 1ms}", 1)); err != nil || what != "update link ab" {
		t.Errorf("%s: %v", what, err)
	}
	if what, err := applied(t, n, strings.Replace(pairYAML, `command: [sleep, "1000"]`, `command: [/no/such/program]`, 1)); err == nil || !strings.Contains(err.Error(), "function a did not start") {
		t.Errorf("%s: %v", what, err)
	}
}

// A supervisor that cannot read the changed chain reports it.
func TestApplyReportsTheSupervisorsError(t *testing.T) {
	n := newNode(t)
	supervisedPair(t, n)
	l, err := n.OpenLocked(context.Background(), "pair")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(l.ChainFile(), []byte("broken"), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := l.reload(ctx, time.Millisecond); err == nil || !strings.Contains(err.Error(), "cannot read the changed chain: ") {
		t.Errorf("%v", err)
	}
	if err := errors.Join(host.ReplaceFile(l.ChainFile(), []byte(pairYAML), 0o600), l.reload(ctx, time.Millisecond), l.Release()); err != nil {
		t.Errorf("with the file back: %v", err)
	}
}

// The signal for a change would end a supervisor of an older version.
func TestApplyRefusesAnOlderSupervisor(t *testing.T) {
	n := newNode(t)
	l := published(t, n)
	var status Status
	path := filepath.Join(l.dir, fileStatus)
	if err := readJSON(path, &status); err != nil {
		t.Fatal(err)
	}
	status.Protocol = 0
	if err := writeJSON(path, status); err != nil {
		t.Fatal(err)
	}
	if what, err := applied(t, n, grownYAML); err == nil || !strings.Contains(err.Error(), "another version of dray") || !strings.Contains(err.Error(), "dray down pair") {
		t.Errorf("%s: %v", what, err)
	}
}

// What a chain has taken counts as available for its next plan.
func TestCountOwn(t *testing.T) {
	l := &Live{node: &Node{StateDir: "/run/dray-test-nothing"}, Chain: &chain.Chain{Name: "c", Functions: []chain.Function{
		{Name: "a", Runtime: chain.RuntimeProcess, HugePages: []chain.HugePages{{Size: 2 << 20, Limit: 5 << 20}}},
		{Name: "b", Runtime: chain.RuntimeVM, Memory: 8 << 20, VM: &chain.VM{HugePages: true}},
	}}}
	vm := int(l.Chain.Functions[1].MachineMemory() >> 21)
	for _, c := range []struct{ total, free, want int }{{1000 + vm, 10, 10 + 3 + vm}, {20, 19, 20}} {
		inv := &inventory.Inventory{Host: inventory.Host{MemoryTotal: 100, MemoryFree: 50, HugePages: []inventory.HugePg{{Size: 2 << 20, Total: c.total, Free: c.free}}}}
		l.CountOwn(inv)
		if got := inv.Host.HugePages[0].Free; got != c.want || inv.Host.MemoryFree != 50 {
			t.Errorf("%d pages of %d are free: now %d, want %d; memory %d", c.free, c.total, got, c.want, inv.Host.MemoryFree)
		}
	}
}
