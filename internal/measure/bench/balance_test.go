// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"slices"
	"strings"
	"testing"

	"github.com/drayage/dray/internal/result/record"
)

// TestChainOfALoadBalancer: generator, balancer and workers are functions of their own,
// joined by one link each. They have CPUs only if there is one for each.
func TestChainOfALoadBalancer(t *testing.T) {
	inv := tunnelHost(t)
	m := matrixOf(t, "transports: [vhost-user]\nvnfs: [lb-1, lb-3]\n")
	for vnf, want := range map[string]struct {
		cpus  []int // of the host
		links []string
	}{
		"lb-1": {[]int{0, 1, 2}, []string{"vnf.q0 a.p0", "vnf.q1 w1.feed"}},
		"lb-3": {[]int{0, 1, 2, 3}, []string{"vnf.q0 a.p0", "vnf.q1 w1.feed", "vnf.q2 w2.feed", "vnf.q3 w3.feed"}},
	} {
		inv.Host.CPUs = want.cpus
		c := record.Config{Transport: "vhost-user", Face: "dpdk", Runtime: "process", Size: "64", VNF: vnf}
		parsed, text, p, err := prepare(m, inv, c)
		if err != nil {
			t.Errorf("%s: %v\n%s", vnf, err, text)
			continue
		}
		var links []string
		for _, l := range parsed.Links {
			links = append(links, l.Ends[0].String()+" "+l.Ends[1].String())
		}
		if !slices.Equal(links, want.links) {
			t.Errorf("%s: links %q, want %q", vnf, links, want.links)
		}
		for _, f := range p.Functions {
			if pinned := len(f.CPUs) > 0; pinned != (vnf == "lb-1") {
				t.Errorf("%s on %d CPUs: function %s has CPUs %v", vnf, len(want.cpus), f.Name, f.CPUs)
			}
		}
		if n := strings.Count(string(text), "--yield"); n != len(want.links) {
			t.Errorf("%s: %d functions yield the CPU:\n%s", vnf, n, text)
		}
	}
}

func TestNoLoadBalancerInMachines(t *testing.T) {
	inv := tunnelHost(t)
	m := matrixOf(t, "transports: [vhost-user]\nvnfs: [lb-1]\n")
	reason, _ := obstacle(m, inv, record.Config{Transport: "vhost-user", Face: "dpdk", Runtime: "vm", Size: "64", VNF: "lb-1"})
	if !strings.Contains(reason, "virtual machine") {
		t.Errorf("the reason is %q", reason)
	}
}

// TestManyFlowsForALoadBalancer: one flow would go to one worker.
func TestManyFlowsForALoadBalancer(t *testing.T) {
	plain := around(record.Config{VNF: "l2fwd"})
	balanced := around(record.Config{VNF: "lb-2"})
	if plain != nil || balanced == nil || balanced.Users != balancedFlows || balanced.Option != "" {
		t.Errorf("around l2fwd %+v, around lb-2 %+v", plain, balanced)
	}
	if tunnelled := around(record.Config{VNF: "bng"}); tunnelled == nil || tunnelled.Option == "" {
		t.Errorf("around bng %+v", tunnelled)
	}
}

func TestWorkersOfALoadBalancerAreUp(t *testing.T) {
	const ready, none = `{"event":"ready"}` + "\n", `{"workers":[{"port":1,"up":true},{"port":2,"up":false}],"rebalances":0}` + "\n"
	all := strings.ReplaceAll(none, "false", "true")
	for log, want := range map[string]bool{
		"": false, ready: false, ready + none: false, ready + all: true, ready + none + all: true, all + none: false, all[:len(all)-20]: false, all + none[:30]: true,
	} {
		if got := workersUp(log); got != want {
			t.Errorf("%q: %v, want %v", log, got, want)
		}
	}
}
