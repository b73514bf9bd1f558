// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/drayage/dray/test/testenv"
)

// balanced is a load balancer's report: the first port replaces the NIC port, and
// the others are workers'.
type balanced struct {
	Drops      map[string]uint64
	Ports      []struct{ Received, Sent uint64 }
	Workers    []struct{ Up bool }
	Rebalances uint64
}

func (s balanced) up() (n int) {
	for _, w := range s.Workers {
		if w.Up {
			n++
		}
	}
	return n
}

// more reports whether, since earlier, packets went to each of these ports' ends and came back.
func (s balanced) more(earlier balanced, ports ...int) bool {
	for _, p := range ports {
		if s.Ports[p].Received <= earlier.Ports[p].Received || s.Ports[p].Sent <= earlier.Ports[p].Sent {
			return false
		}
	}
	return true
}

// awaitBalanced waits until holds accepts the newest line of the balancer's log.
func awaitBalanced(t *testing.T, b *bench, chain, what string, holds func(balanced) bool) balanced {
	t.Helper()
	log := ""
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		log = b.want(0, "logs", chain, "lb").Stdout
		lines := strings.Split(strings.TrimSpace(log), "\n")
		var s balanced
		if json.Unmarshal([]byte(lines[len(lines)-1]), &s) == nil && len(s.Workers) == 2 && len(s.Ports) == 3 && holds(s) {
			return s
		}
	}
	t.Fatalf("not within %v: %s; the balancer's log:\n%s", patience, what, log)
	return balanced{}
}

// TestALoadBalancerWhoseWorkerDies runs the example. Nothing else ends with the worker;
// its flows go to the other until it is back.
//
//	gen ===shm=== lb ===shm=== worker1
//	              lb ===shm=== worker2, which is killed
func TestALoadBalancerWhoseWorkerDies(t *testing.T) {
	t.Parallel()
	needDPDK(t)
	for _, program := range []string{"dray-vnf", "draygen"} {
		testenv.Built(t, program)
	}
	example, err := os.ReadFile("../../examples/load-balancer.yaml")
	if err != nil {
		t.Fatal(err)
	}
	const chain = "lb-dies"
	text := strings.NewReplacer("name: load-balancer", "name: "+chain, "--interval, 1s", "--interval, 100ms").Replace(string(example))
	b := newDPDKBench(t)
	b.want(0, "up", b.file(text))
	before := awaitBalanced(t, b, chain, "both workers get packets, and send them back", func(s balanced) bool {
		return s.more(balanced{Ports: make([]struct{ Received, Sent uint64 }, 3)}, 1, 2)
	})
	if before.up() != 2 {
		t.Errorf("%d workers are up", before.up())
	}
	for _, function := range []string{"gen", "lb", "worker1"} {
		b.noCapabilities(chain, function)
	}
	others := map[string]int{}
	for _, function := range []string{"gen", "lb", "worker1"} {
		others[function] = functionPID(t, b, chain, function)
	}
	killed := functionPID(t, b, chain, "worker2")
	killFunction(t, b, chain, "worker2")
	after := awaitBalanced(t, b, chain, "the worker is back", func(s balanced) bool {
		now := functionPID(t, b, chain, "worker2")
		return now != 0 && now != killed && s.up() == 2
	})
	last := awaitBalanced(t, b, chain, "both workers get packets again", func(s balanced) bool { return s.more(after, 1, 2) })
	if last.Drops["no_worker"] != before.Drops["no_worker"] {
		t.Errorf("without a worker %d packets were dropped before it was killed, and %d after", before.Drops["no_worker"], last.Drops["no_worker"])
	}
	for function, pid := range others {
		if now := functionPID(t, b, chain, function); now != pid {
			t.Errorf("%s was process %d, and is %d", function, pid, now)
		}
	}
	b.want(0, "down", chain)
}
