// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/drayage/dray/internal/spec/chain"
	"github.com/drayage/dray/internal/spec/inventory"
	"github.com/drayage/dray/internal/spec/units"
)

// TestProperties checks a thousand random chains against the properties of every plan.
func TestProperties(t *testing.T) {
	var inventories []*inventory.Inventory
	for _, name := range []string{"vm2", "server8", "v2", "calibrated"} {
		inventories = append(inventories, loadInventory(t, name))
	}
	feasible := 0
	for seed := range uint64(1000) {
		r := rand.New(rand.NewPCG(seed, 0))
		c, inv := randomChain(r), inventories[r.IntN(len(inventories))]
		before := mustJSON(t, []any{c, inv})
		p, err := Make(c, inv)
		var infeasible *Infeasible
		if errors.As(err, &infeasible) {
			p = infeasible.Plan
		} else if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		} else {
			feasible++
		}
		if !bytes.Equal(before, mustJSON(t, []any{c, inv})) {
			t.Fatalf("seed %d: the arguments changed", seed)
		}
		again, errAgain := Make(c, inv)
		if errors.As(errAgain, &infeasible) {
			again = infeasible.Plan
		}
		if !bytes.Equal(mustJSON(t, p), mustJSON(t, again)) {
			t.Fatalf("seed %d: two plans of one chain differ", seed)
		}
		if fault := checkPlan(p, inv, err); fault != "" {
			t.Fatalf("seed %d: %s\n%s", seed, fault, mustJSON(t, p))
		}
		var back Plan
		if err := json.Unmarshal(mustJSON(t, p), &back); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		if !bytes.Equal(mustJSON(t, p), mustJSON(t, &back)) {
			t.Fatalf("seed %d: JSON does not read back: %s", seed, cmp.Diff(mustJSON(t, p), mustJSON(t, &back)))
		}
	}
	if feasible < 100 || feasible > 900 {
		t.Errorf("%d of 1000 chains are feasible: the generator tests one side only", feasible)
	}
}

// checkPlan returns what is wrong with a plan, or nothing.
func checkPlan(p *Plan, inv *inventory.Inventory, err error) string {
	cpus := map[int]bool{}
	for _, f := range p.Functions {
		for _, cpu := range f.CPUs {
			if err == nil && (cpus[cpu] && len(p.Violations) == 0 || !slices.Contains(inv.Host.CPUs, cpu)) {
				return fmt.Sprintf("CPU %d of %s is given twice or is not there", cpu, f.Name)
			}
			cpus[cpu] = true
		}
	}
	ips, macs := map[netip.Addr]bool{}, map[chain.MAC]bool{}
	unmet := 0
	for _, l := range p.Links {
		if fault := checkAccountedFor(&l, inv) + checkDemand(&l, inv); fault != "" {
			return fault
		}
		for _, e := range l.Evidence {
			if !e.Meets {
				unmet++
			}
		}
		for _, e := range l.Ends {
			if e.Uplink != "" || err != nil {
				continue
			}
			if !e.IP.IsValid() || ips[e.IP.Addr()] || macs[e.MAC] || e.MAC.HardwareAddr() == nil {
				return fmt.Sprintf("%s: address %s or %s is missing or given twice", e, e.IP, e.MAC)
			}
			ips[e.IP.Addr()], macs[e.MAC] = true, true
		}
		if err == nil && l.Transport == "" {
			return fmt.Sprintf("link %s of a feasible plan has no transport", l.Name)
		}
	}
	named := 0
	for _, v := range p.Violations {
		if v.Reason == "" || v.Fix == "" || v.Subject == "" || v.Constraint == "" {
			return fmt.Sprintf("violation does not say all: %+v", v)
		}
		if !v.Hard && v.Subject[:4] == "link" {
			named++
		}
	}
	if named != unmet {
		return fmt.Sprintf("%d requirements without evidence, and %d violations that name one", unmet, named)
	}
	return ""
}

// checkAccountedFor requires each transport to be taken, or rejected with a reason.
func checkAccountedFor(l *Link, inv *inventory.Inventory) string {
	seen := map[string]int{}
	if l.Transport != "" {
		seen[l.Transport]++
	}
	for _, r := range l.Rejected {
		if r.Reason == "" {
			return fmt.Sprintf("link %s: %s is rejected without a reason", l.Name, r.Transport)
		}
		seen[r.Transport]++
	}
	for _, t := range inv.Transports {
		if seen[t.Name] != 1 {
			return fmt.Sprintf("link %s: transport %s is accounted for %d times", l.Name, t.Name, seen[t.Name])
		}
	}
	return ""
}

func randomChain(r *rand.Rand) *chain.Chain {
	c := star(1 + r.IntN(4))
	c.Policy.OnInfeasible = oneOf(r, chain.Refuse, chain.Warn)
	for i := range c.Functions {
		f := &c.Functions[i]
		switch r.IntN(8) {
		case 0, 1:
			f.CPUs.Count = 1 + r.IntN(2)
		case 2:
			f.CPUs.Set = []int{r.IntN(5)}
		}
		f.Memory = oneOf(r, 0, 0, 0, units.Bytes(1<<30), 5<<30)
		if r.IntN(12) == 0 {
			f.Runtime = oneOf(r, chain.RuntimeRunc, chain.RuntimeDocker)
		}
	}
	for i := range c.Links {
		randomLink(r, c, i)
	}
	return c
}

func randomLink(r *rand.Rand, c *chain.Chain, i int) {
	l := &c.Links[i]
	l.Isolation = oneOf(r, chain.IsolationSlice, chain.IsolationLink, chain.IsolationNoPeerMemory, chain.IsolationNoSharedMemory)
	l.Transport = oneOf(r, "auto", "auto", "auto", "auto", "veth", "bridge", "macvlan", "ovs", "loopback", "af-packet", "shm")
	if r.IntN(8) == 0 {
		l.Ends[1] = chain.End{Uplink: oneOf(r, "eth0", "eth1", "eth2")}
	}
	far := &c.Functions[i+1].Ports[0]
	if r.IntN(4) == 0 {
		far.IP = prefix(fmt.Sprintf("198.18.%d.7/24", r.IntN(3)*10+i))
	}
	if r.IntN(16) == 0 {
		far.Face = oneOf(r, chain.FaceNative, chain.FaceDPDK)
	}
	q := &l.Requires
	q.MinBitrate = oneOf(r, 0, 0, units.Bitrate(100e6), 2400e6, 4e9, 14e9)
	q.MaxBitrate = oneOf(r, 0, 0, 0, units.Bitrate(1e9))
	q.PacketRate = oneOf(r, 0, 0, 0, units.PacketRate(90e3), 230e3)
	q.MTU = oneOf(r, 0, 0, 1500, 1600)
	if r.IntN(3) == 0 {
		q.Percentile = oneOf(r, units.Percentile(50), 99, 99.9, 99.99)
		q.Latency = oneOf(r, 0, units.Duration(100*time.Microsecond), units.Duration(5*time.Millisecond))
		q.PDV = oneOf(r, 0, units.Duration(100*time.Microsecond), units.Duration(5*time.Millisecond))
	}
	if r.IntN(4) == 0 {
		q.LossRatio = ratio(oneOf(r, units.Ratio(1e-3), 5e-6))
	}
	if r.IntN(8) == 0 {
		l.QoS = &chain.Qdisc{Kind: oneOf(r, "tbf", "htb", "hfsc"), Rate: 2e9}
	}
	l.Frame = oneOf(r, 0, 0, 512)
}

func oneOf[T any](r *rand.Rand, choices ...T) T { return choices[r.IntN(len(choices))] }

func mustJSON(t testing.TB, v any) []byte {
	t.Helper()
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return data
}
