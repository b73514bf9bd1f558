// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"regexp"
	"strings"
	"testing"

	"github.com/drayage/dray/internal/function/guest"
	"github.com/drayage/dray/test/testenv"
)

// A function on the CPU of a lab guest's second NUMA node, with a link to itself:
//
//	CPU 0, node 0: broker        CPU 1, node 1: [ a ] p0 ==shm== p1 [ a ]
const numaChain = `apiVersion: drayage/v1
kind: Chain
name: nodes
functions:
  - {name: a, runtime: process, cpus: "1", command: [sleep, infinity], ports: [{name: p0, face: native}, {name: p1, face: native}]}
links:
  - {name: link, ends: [a.p0, a.p1], transport: shm}
`

// numaMaps is given dray, the chain file and draygen. It prints where the kernel has the
// memory of a generator at each port, once the link is up.
const numaMaps = `set -e
"$0" up "$1" >&2
taskset --all-tasks --cpu-list --pid 0 $(grep -lPa 'daemon\x00nodes' /proc/[0-9]*/cmdline | cut -d/ -f3) >&2
"$0" exec nodes a -- "$2" sink --port dray:p1 --peer-timeout 200s >/dev/null 2>&1 &
"$0" exec nodes a -- "$2" send --port dray:p0 --rate 100pps --peer-timeout 200s >/dev/null 2>&1 &
maps() { for f in $(grep -lx draygen /proc/[0-9]*/comm); do cat ${f%comm}numa_maps; done; }
for i in $(seq 1800); do [ $(maps | grep -c memfd:dray-link) -lt 2 ] || break; sleep 0.1; done
maps | grep -e memfd:dray-link -e heap -e stack
`

var onNode = regexp.MustCompile(` N([0-9]+)=[0-9]+`)

// The memory of functions, and of a link between them, is on the NUMA node of their CPUs.
func TestMemoryIsOnTheNodeOfItsCPUs(t *testing.T) {
	testenv.Program(t, guest.Emulator, "depmod", "taskset")
	b := newBench(t)
	b.env = append(b.env, "DRAY_GUEST="+testenv.Built(t, guest.AgentProgram))
	r := b.want(0, "lab", "--need", "numa", "--guest", "--", "sh", "-c", numaMaps, program, b.file(numaChain), generator(t))
	seen := map[string]int{}
	for _, line := range strings.Split(strings.TrimSpace(r.Stdout), "\n") {
		for _, part := range []string{"memfd:dray-link", "heap", "stack"} {
			if strings.Contains(line, part) {
				seen[part]++
			}
		}
		for _, node := range onNode.FindAllStringSubmatch(line, -1) {
			if node[1] != "1" {
				t.Errorf("memory on node %s: %s", node[1], line)
			}
		}
	}
	if seen["memfd:dray-link"] != 2 || seen["stack"] != 2 {
		t.Errorf("the memory of both generators and of their link, %v: %s", seen, r)
	}
}
