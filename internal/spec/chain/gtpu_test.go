// SPDX-License-Identifier: Apache-2.0

package chain

import "testing"

// TestTunnelsForTheGenerator checks what draygen gets, and how much longer its packets are.
func TestTunnelsForTheGenerator(t *testing.T) {
	c, err := Parse("tunnels", []byte(tunnelledPath))
	if err != nil {
		t.Fatal(err)
	}
	g := c.Paths[0].GTPU
	if got, want := g.String(), "gtpu:teid=1,from=10.9.9.1,to=10.9.9.2,tunnels=1"; got != want || g.Headers() != 36 || g.At != SideTo {
		t.Errorf("%q with headers of %d bytes at %q", got, g.Headers(), g.At)
	}
	g.PDU, g.QFI = PDUUp, 9
	if got, want := g.String(), "gtpu:teid=1,from=10.9.9.1,to=10.9.9.2,tunnels=1,pdu=up,qfi=9"; got != want || g.Headers() != 44 {
		t.Errorf("%q with headers of %d bytes", got, g.Headers())
	}
}
