// SPDX-License-Identifier: Apache-2.0

package instrument

import (
	"errors"
	"strings"
	"testing"
)

// TestApartClocks: two machines' rates count, but their times do not.
func TestApartClocks(t *testing.T) {
	host, machine := Endpoint{Name: "a.p"}, Endpoint{Name: "b.p", Guest: "/run/b/guest"}
	if oneClock(host, machine) || !oneClock(host, host) || !oneClock(machine, machine) {
		t.Error("different machines count as one clock")
	}
	sender := genLine{Sent: 10, ElapsedNs: 1000, Lateness: &genHistogram{}}
	_, err := joined(sender, genLine{Received: 10, ClockErrors: 10})
	if !errors.Is(err, errClocks) {
		t.Errorf("timestamps of two clocks were compared: %v", err)
	}
	if where := placement(machine); !strings.Contains(where, "virtual machine") {
		t.Errorf("placement %q", where)
	}
}
