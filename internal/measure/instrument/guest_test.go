// SPDX-License-Identifier: Apache-2.0

package instrument

import (
	"errors"
	"strings"
	"testing"
)

// TestApartClocks: what two machines say of rates counts, and of times it does not.
func TestApartClocks(t *testing.T) {
	host, machine := Endpoint{Name: "a.p"}, Endpoint{Name: "b.p", Guest: "/run/b/guest"}
	if oneClock(host, machine) || !oneClock(host, host) || !oneClock(machine, machine) {
		t.Error("clocks of different machines are taken for one")
	}
	sender := genLine{Sent: 10, ElapsedNs: 1000, Lateness: &genHistogram{}}
	_, err := joined(sender, genLine{Received: 10, ClockErrors: 10})
	if !errors.Is(err, errClocks) {
		t.Errorf("stamps of two clocks were taken for times: %v", err)
	}
	if where := placement(machine); !strings.Contains(where, "virtual machine") {
		t.Errorf("placement %q", where)
	}
}
