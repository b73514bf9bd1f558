// SPDX-License-Identifier: Apache-2.0

package transporttest

import (
	"context"
	"testing"

	"github.com/drayage/dray/internal/link/transport"
)

// RunDpdkTunnel runs the extra tests of a link between DPDK applications on
// simulated hosts, compared with the same switch on one host.
func RunDpdkTunnel(t *testing.T, d transport.Driver) {
	require(t, d)
	program := forAnyUser(t, "draygen-dpdk")
	openBefore, _ := leaks(t)
	o := Options{Dpdk: []int{0, 1}, Ports: 2}
	t.Run("Caps", func(t *testing.T) { testCaps(t, d) })
	t.Run("SpecErrors", func(t *testing.T) { testSpecErrors(t, d, o) })
	t.Run("Underlay", func(t *testing.T) { testUnderlay(t, d, o) })
	t.Run("HostsInARow", func(t *testing.T) {
		o := o
		o.Row, o.Rate = true, 1e9
		r := NewRig(t, d, o)
		r.Up()
		for from := range r.Spec.Ends {
			r.generate(program, from, 1-from, r.Spec.MTU+14)
		}
	})
	t.Run("SwitchDies", func(t *testing.T) { testTunnelSwitchDies(t, d, program, o) })
	checkLeaks(t, openBefore)
}

// testTunnelSwitchDies sends packets both ways, kills the switch of one host,
// and checks that they pass again after the driver restarts it.
func testTunnelSwitchDies(t *testing.T, d transport.Driver, program string, o Options) {
	r := NewRig(t, d, o)
	report := r.Up()
	if len(report.Processes) != d.Caps().Processes {
		t.Errorf("the report has processes %+v, but the driver states %d", report.Processes, d.Caps().Processes)
	}
	up := sortedLines(r.state())
	for from := range r.Spec.Ends {
		r.generate(program, from, 1-from, r.Spec.MTU+14)
	}
	victim := report.Processes[len(report.Processes)-1]
	killProcess(t, victim)
	ctx, cancel := context.WithTimeout(context.Background(), setupTimeout)
	defer cancel()
	if err := d.(transport.Reviver).Revive(ctx, r.Spec, report); err != nil {
		t.Fatalf("after %s was killed: %v%s", victim.Name, err, r.logs())
	}
	for _, p := range report.Processes {
		if !p.ID.Alive() || p.ID == victim.ID {
			t.Errorf("after %s was killed, the report has %+v", victim.Name, p)
		}
	}
	if now := r.becomes(up); now != up {
		t.Errorf("after %s was killed, the link has changed:\nbefore:\n%s\nafter:\n%s", victim.Name, up, now)
	}
	for from := range r.Spec.Ends {
		r.generate(program, from, 1-from, 100)
	}
	if err := r.Remove(); err != nil {
		t.Error(err)
	}
	r.Clean("after a link whose switch was killed")
}
