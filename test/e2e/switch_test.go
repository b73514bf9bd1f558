// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"encoding/json"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"syscall"
	"testing"
	"time"

	"github.com/drayage/dray/internal/link/transport"
	"github.com/drayage/dray/internal/link/vpp"
	"github.com/drayage/dray/internal/node"
	"github.com/drayage/dray/test/testenv"
)

// needSwitches skips if a switch is missing.
func needSwitches(t *testing.T) {
	t.Helper()
	needDPDK(t)
	testenv.Program(t, "/usr/lib/openvswitch-switch-dpdk/ovs-vswitchd-dpdk", "ovs-vsctl", "ovs-ofctl", "ovsdb-server", "ovsdb-tool")
}

// needSwitch skips if the switch of that transport is missing. VPP is optional.
func needSwitch(t *testing.T, transport string) {
	t.Helper()
	switch transport {
	case "ovs-dpdk", "ovs-dray":
		needSwitches(t)
	case vpp.Name:
		testenv.Kernel(t, vpp.New().Probe(context.Background()))
	case vpp.NameMemif:
		testenv.Kernel(t, vpp.NewMemif().Probe(context.Background()))
	}
}

// switchOf is the process that carries the packets of link n3.
func (b *bench) switchOf(chain string) transport.Process {
	b.t.Helper()
	var state node.State
	text, err := os.ReadFile(filepath.Join(b.state, chain, "state.json"))
	if err == nil {
		err = json.Unmarshal(text, &state)
	}
	if err != nil {
		b.t.Fatal(err)
	}
	processes := state.Reports["n3"].Processes
	return processes[len(processes)-1]
}

var revived = regexp.MustCompile(`, \d+ restarts?, the last within (\S+) at`)

// TestASwitchThatDies kills the switch between two supervised applications: it is
// restarted, and they are not.
//
//	gen  dpdk-testpmd, sends  ── switch ──  dpdk-testpmd, receives  sink
func TestASwitchThatDies(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ driver, more, shown string }{
		{"vhost-user", "", "vhost-user"},
		{"ovs-dpdk", ", forwarding: learning", "ovs-dpdk, learning"},
		{"ovs-dray", "", "ovs-dray, direct"},
	} {
		t.Run(c.driver, func(t *testing.T) {
			needSwitch(t, c.driver)
			b := newDPDKBench(t)
			chain := "dies-" + c.driver
			file := b.file(testpmds(chain, c.driver+c.more, "runtime: runc"))
			b.want(0, "up", file)
			for _, args := range [][]string{{"plan", file}, {"status", chain}} {
				if r := b.want(0, args...); !regexp.MustCompile(`n3\s+` + c.shown + `\s`).MatchString(r.Stdout) {
					t.Errorf("it does not show %q: %s", c.shown, r)
				}
			}
			b.receives(chain)
			gen, sink := functionPID(t, b, chain, "gen"), functionPID(t, b, chain, "sink")
			if !b.switchOf(chain).ID.Signal(syscall.SIGKILL) {
				t.Fatal("the switch does not run")
			}
			var outage []string
			for end := time.Now().Add(3 * time.Minute); outage == nil; time.Sleep(100 * time.Millisecond) {
				r := b.want(0, "status", chain)
				outage = revived.FindStringSubmatch(r.Stdout)
				if time.Now().After(end) {
					t.Fatalf("the switch is not restarted: %s", r)
				}
			}
			t.Logf("the switch ran again after %s", outage[1])
			b.receives(chain)
			if functionPID(t, b, chain, "gen") != gen || functionPID(t, b, chain, "sink") != sink {
				t.Errorf("a function was restarted too: %s", b.want(0, "status", chain))
			}
			b.want(0, "down", chain)
		})
	}
}

// TestKillAChainWithASwitch kills dray at random times during set-up; gc must
// leave nothing of the switch's container.
func TestKillAChainWithASwitch(t *testing.T) {
	t.Parallel()
	needSwitches(t)
	b := newDPDKBench(t)
	seed := rand.Uint64()
	rng := rand.New(rand.NewPCG(seed, 0))
	t.Logf("seed %d", seed)
	for i, driver := range []string{"vhost-user", "ovs-dpdk", "ovs-dray", "ovs-dpdk", "vhost-user"} {
		cmd := b.command(context.Background(), "up", b.file(testpmds("victim", driver, "runtime: runc")))
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		delay := time.Duration(rng.Int64N(int64(1500 * time.Millisecond)))
		time.Sleep(delay)
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		b.collect()
		if left := b.leftovers("victim"); len(left) > 0 {
			t.Fatalf("kill %d, over %s, after %v left %v", i, driver, delay, left)
		}
	}
}
