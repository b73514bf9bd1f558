// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"fmt"
	"net/netip"

	"github.com/drayage/dray/internal/measure/instrument"
	"github.com/drayage/dray/internal/result/record"
	"github.com/drayage/dray/internal/spec/matrix"
)

// tunnel is what a VNF gets that takes encapsulations apart: packets upstream, as
// they come from a customer's equipment or from a radio.
type tunnel struct {
	around *instrument.Encapsulation
	what   string // it is, for people
	// grows is how many bytes longer a frame is when the VNF has done with it.
	grows int
	// user is the source of the packets of the first user; not valid: the port's own.
	user netip.Addr
}

// tunnelUsers are the users of a stream: as many flows as the generator has.
const tunnelUsers = 256

// The session of the first user, in a UPF's table of ten thousand.
const (
	upfAddress, gnbAddress = "198.18.0.1", "198.18.0.2"
	firstUser              = "10.60.0.1"
	firstTEID, flowID      = 1, 9
)

// tunnels are those of each VNF; one without needs none.
var tunnels = map[matrix.VNF]tunnel{
	"bng": {
		around: &instrument.Encapsulation{Option: "qinq:s=1,c=1", Headers: 2 * 4, Users: tunnelUsers},
		what:   "two VLAN tags",
		grows:  4 + 20 + 8 - 2*4, // label, IPv4 and GRE in place of the tags
	},
	"gtpu": {
		around: &instrument.Encapsulation{
			Option:  fmt.Sprintf("gtpu:teid=%d,from=%s,to=%s,pdu=up,qfi=%d", firstTEID, gnbAddress, upfAddress, flowID),
			Headers: 20 + 8 + 8 + 8, Users: tunnelUsers, OwnAddresses: true,
		},
		what: "GTP-U with the PDU session container",
		user: netip.MustParseAddr(firstUser),
	},
}

// bngOptions are dray-vnf's for a gateway of 32,768 users, and gtpuOptions for a UPF
// of 10,000 tunnels, as parts of a list of a chain file.
func bngOptions() string {
	return fmt.Sprintf(", --next-hop, 1=%s", sinkMAC)
}

func gtpuOptions() string {
	return fmt.Sprintf(", --role, upf, --tunnels, %q, --teid, %q, --ue, %q, --qfi, %q, --ip, 0=%s, --peer, 0=%s, --next-hop, 0=%s, --next-hop, 1=%s",
		"10000", fmt.Sprint(firstTEID), firstUser, fmt.Sprint(flowID), upfAddress, gnbAddress, senderMAC, sinkMAC)
}

// tooSmall is why frames of a size cannot be sent to a VNF; empty if they can.
// A mix has small ones, and would be another mix without them.
func tooSmall(c record.Config) (reason, fix string) {
	t := tunnels[matrix.VNF(c.VNF)]
	var size matrix.FrameSize
	if err := size.UnmarshalText([]byte(c.Size)); t.around == nil || err != nil || int(size) >= t.around.Smallest() {
		return "", ""
	}
	if size == matrix.IMIX {
		size = 64
	}
	return fmt.Sprintf("frames of %d bytes do not hold %s, IP, UDP and the generator's stamp, which take %d", size, t.what, t.around.Smallest()),
		fmt.Sprintf("sizes: [%d]", t.around.Smallest())
}
