// SPDX-License-Identifier: Apache-2.0

package transporttest

import (
	"strings"
	"testing"

	"github.com/drayage/dray/internal/link/transport"
)

// RunDpdkBeside passes traffic both ways between a DPDK application's device
// and an interface, whose checksums the sender must complete.
func RunDpdkBeside(t *testing.T, d transport.Driver) {
	require(t, d)
	program := forAnyUser(t, "draygen-dpdk")
	r := NewRig(t, d, Options{Dpdk: []int{0}, Ports: 2})
	report := r.Up()
	netdev := r.Spec.Ends[1]
	if now, err := netdev.Netns.Offloads(netdev.Name); err != nil || len(report.Offloads) != 1 || !strings.Contains(now, report.Offloads[0].Feature+" off") {
		t.Errorf("%s has %q (%v), and reported is %+v", netdev.Name, now, err, report.Offloads)
	}
	checkSilence(t, r)
	for _, size := range []int{100, r.Spec.MTU + 14} {
		r.generate(program, 0, 1, size)
		r.generate(program, 1, 0, size)
	}
	if err := r.Remove(); err != nil {
		t.Error(err)
	}
	r.Clean("after removal")
}
