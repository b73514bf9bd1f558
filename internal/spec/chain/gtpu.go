// SPDX-License-Identifier: Apache-2.0

package chain

import (
	"fmt"
	"net/netip"
)

// GTPU are the GTP-U tunnels (TS 29.281) at one end of a path: as between a gNB or UPF at
// that end and the function that takes the packets out of them. The inner address of the
// first tunnel's user is that of the end's port.
type GTPU struct {
	At      Side       `json:"at"`
	From    netip.Addr `json:"from"`          // outer address of the end
	To      netip.Addr `json:"to"`            // outer address of the function
	TEID    int        `json:"teid"`          // of the first tunnel; the others count up
	Tunnels int        `json:"tunnels"`       // each of its own user
	PDU     PDU        `json:"pdu,omitempty"` // direction of what the end sends, in the PDU session container (TS 38.415); empty: none
	QFI     int        `json:"qfi,omitempty"` // in that container
}

// Side is one end of a path.
type Side string

// The ends of a path.
const (
	SideFrom Side = "from"
	SideTo   Side = "to"
)

// PDU is the direction of a PDU session container.
type PDU string

// The directions.
const (
	PDUUp   PDU = "up"   // a gNB sends it
	PDUDown PDU = "down" // a UPF sends it
)

// Headers are the bytes that a tunnel adds to a packet: IPv4, UDP, GTP-U, and the
// extension header.
func (g *GTPU) Headers() int {
	const ipv4, udp, plain, container = 20, 8, 8, 8
	if g.PDU == "" {
		return ipv4 + udp + plain
	}
	return ipv4 + udp + plain + container
}

// String is the tunnels in draygen's form.
func (g *GTPU) String() string {
	text := fmt.Sprintf("gtpu:teid=%d,from=%s,to=%s,tunnels=%d", g.TEID, g.From, g.To, g.Tunnels)
	if g.PDU != "" {
		text += fmt.Sprintf(",pdu=%s,qfi=%d", g.PDU, g.QFI)
	}
	return text
}
