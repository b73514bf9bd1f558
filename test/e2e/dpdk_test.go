// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/drayage/dray/internal/function/docker/dockertest"
	"github.com/drayage/dray/test/testenv"
)

// testpmds is a chain of two unmodified applications:
//
//	gen  dpdk-testpmd, sends  ── n3 ──  dpdk-testpmd, receives  sink
func testpmds(name, transport, sink string) string {
	const function = `
  - name: %s
    memory: 512Mi
    restart: on-failure
    %s
    command: [dpdk-testpmd, $(DRAY_EAL), --, --forward-mode=%s, --stats-period=1, --total-num-mbufs=4096]
    ports: [{name: n3, face: dpdk}]`
	return fmt.Sprintf(`
apiVersion: drayage/v1
kind: Chain
name: %s
functions:`+function+function+`
links:
  - {name: n3, ends: [gen.n3, sink.n3], transport: %s}
`, name, "gen", "runtime: runc", "txonly", "sink", sink, "rxonly", transport)
}

// needDPDK skips if there is no DPDK.
func needDPDK(t *testing.T) {
	t.Helper()
	testenv.Program(t, "dpdk-testpmd", "runc")
	testenv.Built(t, "librte_net_dray.so")
}

// newDPDKBench is newBench for a dray that knows the driver's path.
func newDPDKBench(t *testing.T) *bench {
	t.Helper()
	needDPDK(t)
	b := newBench(t)
	b.env = append(b.env, "DRAY_LIB="+filepath.Dir(testenv.Built(t, "librte_net_dray.so")))
	return b
}

// TestDPDKApplicationsWithoutPrivileges passes packets between unmodified
// applications, over memory shared by net_dray or DPDK's own driver.
func TestDPDKApplicationsWithoutPrivileges(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ name, transport, sink string }{
		{"pmd-shm", "shm", "runtime: runc"},
		{"pmd-docker", "shm", "runtime: docker\n    image: dray-e2e-dpdk"},
		{"pmd-memif", "memif", "runtime: runc"},
	} {
		t.Run(test.name, func(t *testing.T) {
			b := newDPDKBench(t)
			if strings.Contains(test.sink, "docker") {
				client := dockertest.Start(t)
				dockertest.Import(t, client, "dray-e2e-dpdk", append(dpdkFiles(t), "dpdk-testpmd", "grep")...)
				b.env = append(b.env, "DOCKER_HOST="+client.Host)
			}
			b.want(0, "up", b.file(testpmds(test.name, test.transport, test.sink)))
			b.receives(test.name)
			for _, function := range []string{"gen", "sink"} {
				caps := b.want(0, "exec", test.name, function, "--", "grep", "Cap", "/proc/self/status").Stdout
				if n := strings.Count(caps, ":\t0000000000000000\n"); n != 5 {
					t.Errorf("%s has capabilities:\n%s", function, caps)
				}
			}
			b.want(0, "down", test.name)
		})
	}
}

// dpdkFiles are the other files that an application needs in an image.
func dpdkFiles(t *testing.T) []string {
	t.Helper()
	found, err := filepath.Glob("/usr/lib/*/dpdk/pmds-*/librte_mempool_ring.so")
	if err != nil || len(found) == 0 {
		t.Skipf("needs DPDK's driver mempool_ring where Debian puts it: %v", err)
	}
	// net_dray comes from the host, but not the libraries that it needs.
	return []string{testenv.Built(t, "librte_net_dray.so"), found[len(found)-1]}
}

var received = regexp.MustCompile(`RX-packets: (\d+)`)

// receives waits until the sink's count has grown twice: the first growth may be
// earlier packets, not yet printed.
func (b *bench) receives(chain string) {
	b.t.Helper()
	b.receivesFrom(chain, "gen", "sink")
}

// receivesFrom is receives for functions of these names.
func (b *bench) receivesFrom(chain, gen, sink string) {
	b.t.Helper()
	var last uint64
	known, grown, log := false, 0, ""
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(200 * time.Millisecond) {
		log = b.want(0, "logs", chain, sink).Stdout
		all := received.FindAllStringSubmatch(log, -1)
		if len(all) == 0 {
			continue
		}
		n, err := strconv.ParseUint(all[len(all)-1][1], 10, 64)
		if err != nil {
			b.t.Fatal(err)
		}
		if int64(n) < 0 { // net_memif counts so after its peer has gone
			continue
		}
		switch {
		case !known || n < last: // a new instance restarts its counts
			known, grown = true, 0
		case n > last:
			grown++
		}
		if last = n; grown == 2 {
			return
		}
	}
	b.t.Fatalf("the sink receives nothing within %v; gen:\n%s\nsink:\n%s", patience, b.want(0, "logs", chain, gen).Stdout, log)
}

// killFunction kills a running function's process.
func killFunction(t *testing.T, b *bench, chain, function string) {
	t.Helper()
	b.kill(function, func() int { return functionPID(t, b, chain, function) })
}

// kill kills the process that pid finds. That is 0 while there is none: it may have ended by
// itself, and be about to start again.
func (b *bench) kill(name string, pid func() int) {
	b.t.Helper()
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		victim := pid() // 0 would be this test's own process group
		if victim > 0 && syscall.Kill(victim, syscall.SIGKILL) == nil {
			return
		}
	}
	b.t.Fatalf("%s does not run", name)
}

// TestAMemifPeerThatDies: DPDK's driver crashes or hangs when its peer ends. Each
// is reported and replaced, and packets pass again.
func TestAMemifPeerThatDies(t *testing.T) {
	t.Parallel()
	b := newDPDKBench(t)
	const chain = "pmd-dies"
	b.want(0, "up", b.file(testpmds(chain, "memif", "runtime: runc")))
	b.receives(chain)
	for restarts, victim := range []string{"gen", "sink"} {
		sink := functionPID(t, b, chain, "sink")
		killFunction(t, b, chain, victim)
		// The sink connects: whichever end dies, the sink must be a new process.
		end := time.Now().Add(time.Minute)
		for pid := sink; pid == sink || pid == 0; pid = functionPID(t, b, chain, "sink") {
			if time.Now().After(end) {
				t.Fatalf("after %s was killed, the sink is still process %d", victim, pid)
			}
			time.Sleep(100 * time.Millisecond)
		}
		b.receives(chain)
		if r := b.want(0, "status", chain); strings.Count(r.Stdout, " restart") < 1+restarts {
			t.Errorf("the end of %s is not reported: %s", victim, r)
		}
	}
	b.want(0, "down", chain)
}
