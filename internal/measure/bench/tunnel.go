// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"fmt"
	"net/netip"

	"github.com/drayage/dray/internal/measure/instrument"
	"github.com/drayage/dray/internal/result/record"
	"github.com/drayage/dray/internal/spec/matrix"
)

// tunnel describes the input of a decapsulating VNF: upstream packets, as they
// come from a customer's equipment or a radio.
type tunnel struct {
	around *instrument.Encapsulation
	what   string // its name for people
	// grows is how many bytes the VNF adds to a frame.
	grows int
	// user is the source of the first user's packets; invalid: the port's own.
	user netip.Addr
}

// tunnelUsers are a stream's users: as many as the generator has flows.
const tunnelUsers = 256

// The first user's session, in a UPF's table of ten thousand.
const (
	upfAddress, gnbAddress = "198.18.0.1", "198.18.0.2"
	firstUser              = "10.60.0.1"
	firstTEID, flowID      = 1, 9
)

// tunnels are the VNFs' tunnels; the others need none.
var tunnels = map[matrix.VNF]tunnel{
	"bng": {
		around: &instrument.Encapsulation{Option: "qinq:s=1,c=1", Headers: 2 * 4, Users: tunnelUsers},
		what:   "two VLAN tags",
		grows:  4 + 20 + 8 - 2*4, // label, IPv4 and GRE replace the tags
	},
	"gtpu": {
		around: &instrument.Encapsulation{
			Option:  fmt.Sprintf("gtpu:teid=%d,from=%s,to=%s,pdu=up,qfi=%d", firstTEID, gnbAddress, upfAddress, flowID),
			Headers: 20 + 8 + 8 + 8, Users: tunnelUsers, Spread: "from",
		},
		what: "GTP-U with the PDU session container",
		user: netip.MustParseAddr(firstUser),
	},
}

// bngOptions are dray-vnf's options for a gateway of 32,768 users, and gtpuOptions
// for a UPF of 10,000 tunnels, as chain file list items.
func bngOptions() string {
	return fmt.Sprintf(", --next-hop, 1=%s", sinkMAC)
}

func gtpuOptions() string {
	return fmt.Sprintf(", --role, upf, --tunnels, %q, --teid, %q, --ue, %q, --qfi, %q, --ip, 0=%s, --peer, 0=%s, --next-hop, 0=%s, --next-hop, 1=%s",
		"10000", fmt.Sprint(firstTEID), firstUser, fmt.Sprint(flowID), upfAddress, gnbAddress, senderMAC, sinkMAC)
}

// tooSmall is why a VNF cannot get frames of a size; empty if it can. A mix
// includes small frames, and would differ without them.
func tooSmall(c record.Config) (reason, fix string) {
	t := tunnels[matrix.VNF(c.VNF)]
	var size matrix.FrameSize
	if err := size.UnmarshalText([]byte(c.Size)); t.around == nil || err != nil || int(size) >= t.around.Smallest() {
		return "", ""
	}
	if size == matrix.IMIX {
		size = 64
	}
	return fmt.Sprintf("frames of %d bytes cannot hold %s, IP, UDP and the generator's stamp, which need %d", size, t.what, t.around.Smallest()),
		fmt.Sprintf("sizes: [%d]", t.around.Smallest())
}
