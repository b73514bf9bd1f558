// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"net/netip"
	"time"

	"github.com/drayage/dray/internal/spec/chain"
	"github.com/drayage/dray/internal/spec/units"
)

const (
	// slowestHZ is the slowest timer tick of Debian's kernels. A token bucket must hold
	// one tick's worth of its rate, or it never reaches the rate (tc-tbf(8)).
	slowestHZ = 250
	// largestGSO is the largest packet that reaches a qdisc before segmentation: 64 KiB
	// (GSO_LEGACY_MAX_SIZE). Qdiscs also count a header per segment, with segments of
	// 536 bytes at worst. With a smaller bucket, tbf segments in software and does not
	// reach a high rate.
	largestGSO = 80 * 1024
	// shapeLatency is the longest wait in a tbf queue that the chain does not
	// parametrise. It is about one TCP round trip over a wide-area link, the least with
	// which one stream fills the rate.
	shapeLatency = 20 * time.Millisecond
	// defaultQueue is the length of a queue without a limit, in packets: the kernel's
	// default txqueuelen.
	defaultQueue = 1000
	ethernet     = 14 // bytes of header that qdiscs count
	checksum     = 4  // bytes of FCS, which they do not
	ipv4Header   = 20
	ipv6Header   = 40
	tcpHeader    = 32 // bytes with time stamps
	udpHeader    = 8
	smallFrame   = 64 // bytes of the frames that packet_rate counts, over IPv4
)

// wantedShape is the egress qdisc of the link's ports that have none of their own: its
// qos, or a token bucket at its max_bitrate, or nil.
func wantedShape(l *chain.Link) *chain.Qdisc {
	if l.QoS == nil && l.Requires.MaxBitrate > 0 {
		return &chain.Qdisc{Kind: "tbf", Rate: l.Requires.MaxBitrate}
	}
	return l.QoS
}

// completed fills in parameters that the chain leaves out, for a qdisc of the kernel.
func completed(given *chain.Qdisc) *chain.Qdisc {
	if given == nil {
		return nil
	}
	q := *given
	if q.Burst == 0 && (q.Kind == "tbf" || q.Kind == "htb") {
		q.Burst = max(units.Bytes(q.Rate/8/slowestHZ), largestGSO)
	}
	if q.Latency == 0 && q.Kind == "tbf" && q.Child == nil {
		q.Latency = units.Duration(shapeLatency)
	}
	return &q
}

// tightest is the most restrictive qdisc of a link's ports; nil: there is none.
func tightest(shapes []*chain.Qdisc, mtu int) *chain.Qdisc {
	var found *chain.Qdisc
	for _, q := range shapes {
		rate, least := shapedRate(q), shapedRate(found)
		switch {
		case found == nil, least == 0 && rate > 0, rate > 0 && rate < least,
			rate > 0 && rate == least && queueBound(q, mtu) > queueBound(found, mtu):
			found = q
		}
	}
	return found
}

// defaultQueues holds queue lengths of kinds with their own default (sch_sfq.c,
// sch_fq_codel.c), in packets.
var defaultQueues = map[string]int{"sfq": 127, "fq_codel": 10240}

// shapedRate is the highest rate that a qdisc passes, in bit/s of Ethernet frames
// without checksum; 0 if it sets no limit.
func shapedRate(q *chain.Qdisc) units.Bitrate {
	if q == nil {
		return 0
	}
	return max(q.Rate, q.Ceil)
}

// goodput is the payload rate of the link's traffic at a given frame rate.
func (n *needs) goodput(rate units.Bitrate) uint64 {
	if n.link.Traffic != chain.TrafficTCP {
		return n.datagrams(rate)
	}
	return uint64(float64(rate) * float64(n.mtu-n.ipHeader()-tcpHeader) / float64(n.mtu+ethernet))
}

// datagrams is the UDP payload rate at a given frame rate: a load consists of datagrams
// for any traffic of the link.
func (n *needs) datagrams(rate units.Bitrate) uint64 {
	return uint64(float64(rate) * n.udpPayload() / float64(n.frame()-checksum))
}

// frame is the length of the link's UDP frames, in bytes with FCS.
func (n *needs) frame() int {
	if n.link.Frame > 0 {
		return n.link.Frame
	}
	return n.mtu + ethernet + checksum
}

// udpPayload is the payload of the link's UDP frames, in bytes.
func (n *needs) udpPayload() float64 { return udpPayload(n.frame(), n.ipHeader()) }

// udpPayload is the payload of a UDP datagram in a frame with FCS.
func udpPayload(frame, ipHeader int) float64 {
	return float64(frame - ethernet - checksum - ipHeader - udpHeader)
}

// smallFrame is the length of the frames that packet_rate counts on the link.
func (n *needs) smallFrame() int { return smallFrame + n.ipHeader() - ipv4Header }

// ipHeader is the length of the header of the link's family: all ports are in one
// subnet. The planner assigns addresses of IPv4.
func (n *needs) ipHeader() int {
	for _, e := range n.ports {
		if e.port.IP.IsValid() {
			return ipHeader(e.port.IP)
		}
	}
	return ipv4Header
}

func ipHeader(p netip.Prefix) int {
	if p.Addr().Is6() {
		return ipv6Header
	}
	return ipv4Header
}

// UDPPayload is the payload of a datagram of the planned link, in bytes: in a frame of
// its length, or filling the MTU.
func (l Link) UDPPayload() int {
	packet, headers := l.MTU, ipv4Header+udpHeader
	if l.Frame > 0 {
		packet = l.Frame - ethernet - checksum
	}
	for _, e := range l.Ends {
		if e.IP.IsValid() {
			headers = ipHeader(e.IP) + udpHeader
			break
		}
	}
	return max(1, packet-headers)
}

// queueBound is the longest wait of a packet in a shaped queue whose load exceeds its
// rate, in ns.
func queueBound(q *chain.Qdisc, mtu int) float64 {
	if q.Latency > 0 {
		return float64(q.Latency)
	}
	bits := 0.0
	for _, queue := range q.Queues() {
		bits += bitsOf(queue, mtu, shapedRate(q))
	}
	return bits / float64(shapedRate(q)) * float64(time.Second)
}

// bitsOf is how much waits in a full queue that is sent at a rate; nil: of a class without
// parameters. With slot deadlines nothing waits for longer than a slot.
func bitsOf(queue *chain.Qdisc, mtu int, rate units.Bitrate) float64 {
	if queue == nil {
		queue = &chain.Qdisc{}
	}
	if queue.Kind == "bfifo" && queue.Limit > 0 {
		return float64(queue.Limit) * 8
	}
	packets := cmp.Or(queue.Limit, defaultQueues[queue.Kind], defaultQueue)
	bits := float64(packets) * float64(mtu+ethernet) * 8
	if queue.Slot > 0 {
		return min(bits, float64(rate)*time.Duration(queue.Slot).Seconds())
	}
	return bits
}
