// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/drayage/dray/test/testenv"
)

// TestAnAddressOnAnUplinkIsOnePorts: a second chain with the address of the first, or with
// the host's own, is refused, and so is a change to one.
//
//	[ upf ]──n6──( an interface of this host )──n6──[ upf of another chain ]
func TestAnAddressOnAnUplinkIsOnePorts(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	uplink, far := fmt.Sprintf("drayu%d", os.Getpid()), fmt.Sprintf("drayw%d", os.Getpid())
	ip := func(args string) {
		t.Helper()
		out, err := exec.Command("ip", strings.Fields(args)...).CombinedOutput()
		if err != nil {
			t.Fatalf("ip %s: %v: %s", args, err, out)
		}
	}
	testenv.Program(t, "ip")
	ip("link add " + uplink + " type veth peer name " + far)
	t.Cleanup(func() { ip("link delete " + uplink) })
	ip("link set " + far + " up")
	ip("link set " + uplink + " up")
	ip("address add 192.0.2.5/24 dev " + uplink)
	chain := func(name, address string) string {
		return b.file(fmt.Sprintf(`apiVersion: drayage/v1
kind: Chain
name: %s
functions:
  - {name: upf, runtime: process, command: [sleep, infinity], ports: [{name: n6%s}]}
links:
  - {name: n6, ends: [upf.n6, {uplink: %s}], transport: macvlan}
`, name, address, uplink))
	}
	refused := func(says string, args ...string) {
		t.Helper()
		if r := b.want(3, args...); !strings.Contains(r.Err, says) {
			t.Errorf("not %q: %s", says, r)
		}
	}
	b.want(0, "up", chain("one", ", ip: 192.0.2.10/24"))
	const taken = "ip 192.0.2.10 of upf.n6: the port upf.n6 of chain one has this address on "
	refused(taken, "up", chain("two", ", ip: 192.0.2.10/25"))
	refused("ip 192.0.2.5 of upf.n6: this host has this address on "+uplink, "up", chain("two", ", ip: 192.0.2.5/24"))
	b.want(0, "up", chain("two", ""))
	b.want(0, "up", chain("three", "")) // another address than that of two
	refused(taken+uplink, "apply", chain("two", ", ip: 192.0.2.10/24"))
	b.want(0, "apply", chain("two", ", ip: 192.0.2.11/24"))
	b.want(0, "down", "one")
	b.want(0, "apply", chain("two", ", ip: 192.0.2.10/24"))
	b.want(0, "down", "--all")
}
