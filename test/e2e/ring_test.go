// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"testing"
	"time"

	"github.com/drayage/dray/test/testenv"
)

// TestTwoProcessesOfEAL connects an unmodified application, an EAL primary
// process, to a secondary one by rings in their shared memory, and kills each:
//
//	sink  dpdk-testpmd, receives  ── n3, dpdk-ring ──  draygen-dpdk, sends  gen
//
// If the primary process dies, so does the other; no other death spreads.
func TestTwoProcessesOfEAL(t *testing.T) {
	t.Parallel()
	needDPDK(t)
	draygen := testenv.Built(t, "draygen-dpdk")
	testenv.HugePages(t, 96) // 32 are the second function's, which uses the first one's
	b := newDPDKBench(t)
	const chain = "e2e-ring"
	b.want(0, "up", b.file(fmt.Sprintf(`
apiVersion: drayage/v1
kind: Chain
name: %[1]s
policy: {privileged: true}
functions:
  - name: sink
    runtime: process
    hugepages: {2Mi: 64Mi}
    restart: on-failure
    command: [dpdk-testpmd, $(DRAY_EAL), --, --forward-mode=rxonly, --stats-period=1, --total-num-mbufs=4096]
    ports: [{name: n3, face: dpdk}]
  - name: gen
    runtime: process
    hugepages: {2Mi: 64Mi}
    restart: on-failure
    command: [sh, -c, 'exec %[2]s send --port dpdk:net_mpring_peer0 --eal "$DRAY_EAL" --rate 5kpps --duration 600s --peer-timeout 60s']
    ports: [{name: n3, face: dpdk}]
links:
  - {name: n3, ends: [sink.n3, gen.n3], transport: dpdk-ring, isolation: slice}
`, chain, draygen)))
	b.receives(chain)
	for _, victim := range []string{"gen", "sink"} {
		sink, gen := functionPID(t, b, chain, "sink"), functionPID(t, b, chain, "gen")
		killFunction(t, b, chain, victim)
		end := time.Now().Add(time.Minute)
		for pid := gen; pid == gen || pid == 0; pid = functionPID(t, b, chain, "gen") {
			if time.Now().After(end) {
				t.Fatalf("after %s was killed, the generator is still process %d", victim, pid)
			}
			time.Sleep(100 * time.Millisecond)
		}
		b.receives(chain)
		if now := functionPID(t, b, chain, "sink"); (now == sink) != (victim == "gen") {
			t.Errorf("after %s was killed, the sink is process %d, and was %d", victim, now, sink)
		}
	}
	b.want(0, "down", chain)
}
