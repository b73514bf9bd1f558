// SPDX-License-Identifier: Apache-2.0

package instrument

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/drayage/dray/internal/result/record"
	"github.com/drayage/dray/internal/spec/chain"
	"github.com/drayage/dray/internal/spec/inventory"
)

// Draygen measures with Drayage's own generator and sink, which stamp and number
// every packet. For Params.Duration, it offers the load that Quantity selects:
//
//   - QStream: Params.Slots, or Params.Bitrate of payload, in frames of
//     Params.Frame bytes, or packets that fill the MTU; next to Params.Bulk;
//   - QProbe: Params.MessageRate of the smallest packets;
//   - QPacketRate: Params.PacketRate of the smallest packets;
//   - QThroughput: such packets, at Params.Bitrate, or as many as the port accepts;
//   - QFrames: Params.PacketRate frames of Params.Frame bytes, or as many as the
//     port accepts;
//   - QPathMTU: a few packets of Params.MTU bytes, for as long as they take.
//
// Idle senders and sinks sleep, to leave the CPUs to the link. On a native port
// the sink polls, as its users do, if Params.Poll permits it.
type Draygen struct{ Quantity record.Quantity }

var draygen = tool{name: "draygen", own: true, ask: []string{"--version"}, version: regexp.MustCompile(`draygen (\S+)`)}

func (Draygen) Name() string                             { return draygen.name }
func (Draygen) Probe(ctx context.Context) inventory.Item { return draygen.probe(ctx) }

const (
	genMAC = 14 // bytes of a frame before the packet
	genFCS = 4
	// genPayload is the smallest that holds the generator's short header. It makes
	// frames of 64 bytes with FCS, and of 84 over IPv6.
	genPayload = 18
	// genDiscard is the destination of frames for a port that is no interface;
	// nothing reads it.
	genDiscard = 5010
	// genWarmup is how long the stream runs before the first packet counts: the
	// peer's address is resolved, caches and branch predictors are warm.
	genWarmup = 100 * time.Millisecond
	// genLinger is how long the sink may take to end by itself. It waits for 200 ms
	// if packets are missing.
	genLinger = time.Second
	// nativePoll is how long a sink polls a native port before it sleeps: longer than
	// the gap between the sender's bursts.
	nativePoll = time.Millisecond
	// A sender that lost its CPU catches up, but by at most about this many packets,
	// none older than this. A longer burst would queue, and its delay would be
	// attributed to the link.
	catchUpPackets            = 300
	leastCatchUp, mostCatchUp = 10 * time.Millisecond, 100 * time.Millisecond
	// lateSend is how late a sender may be, in one of a hundred packets, before the
	// trial is marked.
	lateSend = time.Millisecond
)

// offer is the load requested from a sender.
type offer struct {
	frame   int    // bytes, without FCS
	ip6     bool   // packets are IPv6
	rate    string // draygen's form
	perSec  float64
	packets int // 0: no limit
	warmup  int
	poll    bool
	mixed   bool // frames of three sizes; frame is their mean
	busy    bool // both ends spin
	batch   int  // packets in one system call, at most; 0: draygen's own limit
	encap   *Encapsulation
	nextHop string // see Params
	dscp    int
	bulk    *Bulk                       // nil: one stream
	slots   chain.SlotLoad              // nil: frames at a rate
	opened  func(context.Context) error // see Params
}

// headers are the bytes before a frame's payload: Ethernet, IP and UDP, and any
// encapsulation.
func (o offer) headers() int {
	switch {
	case o.slots != nil:
		return o.slots.Headers()
	case o.ip6:
		return genMAC + ipv6Header + udpHeader
	case o.encap != nil:
		return genMAC + ipv4Header + udpHeader + o.encap.Headers
	}
	return genMAC + ipv4Header + udpHeader
}

// smallest is the smallest frame that holds the generator's header.
func (o offer) smallest() int { return o.headers() + genPayload }

// payloadBits is the payload of one packet.
func (o offer) payloadBits() float64 { return float64(8 * (o.frame - o.headers())) }

// catchUp is how late a packet may still be sent.
func (o offer) catchUp() time.Duration {
	return min(max(time.Duration(catchUpPackets/o.perSec*float64(time.Second)), leastCatchUp), mostCatchUp)
}

// fullFrame is a stream's frame: the requested one, or one that fills the MTU.
func fullFrame(from, to Endpoint, p Params) int {
	if p.Frame > 0 {
		return p.Frame
	}
	return min(from.MTU, to.MTU, math.MaxUint16-genMAC) + genMAC
}

// wanted is the quantity's offer with these parameters.
func (g Draygen) wanted(from, to Endpoint, p Params) (offer, error) {
	if g.Quantity == record.QFrames {
		return g.frames(from, to, p)
	}
	if g.Quantity == record.QStream && p.Slots != nil {
		return slotted(p).warm(), nil
	}
	o := offer{frame: fullFrame(from, to, p), ip6: ipHeader(to.IP) == ipv6Header, poll: p.Poll, nextHop: p.NextHop, encap: p.Encap, dscp: p.DSCP, bulk: p.Bulk, opened: p.Opened}
	if o.ip6 && o.encap != nil {
		return o, errEncapsulated
	}
	switch g.Quantity {
	case record.QStream:
		o.rate, o.perSec = strconv.FormatUint(p.Bitrate, 10)+"bps", float64(p.Bitrate)/o.payloadBits()
	case record.QProbe:
		o.frame, o.rate, o.perSec = o.smallest(), strconv.FormatUint(p.MessageRate, 10)+"pps", float64(p.MessageRate)
	case record.QPacketRate:
		o.frame, o.rate, o.perSec = o.smallest(), strconv.FormatUint(p.PacketRate, 10)+"pps", float64(p.PacketRate)
	case record.QThroughput:
		if o.rate, o.warmup = "max", genMaxWarmup; p.Bitrate > 0 {
			o.rate, o.perSec = strconv.FormatUint(p.Bitrate, 10)+"bps", float64(p.Bitrate)/o.payloadBits()
		}
	default:
		return o, fmt.Errorf("draygen does not measure %q", g.Quantity)
	}
	if o.frame < o.smallest() {
		return o, fmt.Errorf("draygen: an MTU of %d bytes is too small for its header: at least %d", o.frame-genMAC, o.smallest()-genMAC)
	}
	if o.rate == "max" {
		return o, nil
	}
	if o.perSec <= 0 {
		return o, errors.New("draygen: no rate to offer")
	}
	return o.warm(), nil
}

// warm begins the offer before its first packet counts.
func (o offer) warm() offer {
	lasts := genWarmup
	if o.bulk != nil {
		lasts = bulkWarmup
	}
	o.warmup = int(math.Ceil(o.perSec * lasts.Seconds()))
	return o
}

// Run sends from one port to the other and reads the results at both.
func (g Draygen) Run(ctx context.Context, from, to Endpoint, p Params) (record.Trial, error) {
	t := begin(g.Quantity, from, to)
	if g.Quantity == record.QPathMTU {
		return g.pathMTU(ctx, t, from, to, p)
	}
	o, err := g.wanted(from, to, p)
	if err != nil {
		return t, err
	}
	result, err := g.send(ctx, &t, from, to, o, p.Duration)
	if err != nil {
		return t, err
	}
	t.Duration = result.span()
	if g.Quantity == record.QThroughput {
		t.Throughput, t.Delivery = result.throughput(o), result.delivery(g.Quantity, o, p)
		if result.starved() {
			t.Marks = append(t.Marks, record.MarkOversubscribed)
		}
		return t, nil
	}
	t.Delivery = result.delivery(g.Quantity, o, p)
	if t.Delivery.Bulk, err = result.bulk(o); err != nil {
		return t, fmt.Errorf("draygen from %s to %s: %w", from.Name, to.Name, err)
	}
	if oneClock(from, to) {
		t.OneWay = result.oneWay()
		if t.Windows, err = result.windows(o); err != nil {
			return t, fmt.Errorf("draygen from %s to %s: %w", from.Name, to.Name, err)
		}
	}
	if g.Quantity == record.QFrames {
		span, err := result.stream()
		if err != nil {
			return t, err
		}
		t.Bench = &record.Bench{Span: span}
	}
	t.Marks = append(t.Marks, result.marks(t)...)
	return t, nil
}

// send runs one stream and fills in what is always known of the trial.
func (g Draygen) send(ctx context.Context, t *record.Trial, from, to Endpoint, o offer, d time.Duration) (genResult, error) {
	s, version, err := genPrograms(ctx, from, to, o, d)
	if err != nil {
		return genResult{}, err
	}
	if len(t.Instrument.Client) == 0 {
		t.Instrument = describe(draygen, version, s)
	}
	out, err := s.run(ctx)
	if t.Start.IsZero() {
		t.Start = out.start
	}
	t.Duration += out.duration
	t.Raw = raw([]byte(t.Raw), genSummary(out.client), genSummary(out.server))
	if err != nil {
		return genResult{}, genError(err, from, to)
	}
	result, err := parseDraygen(out.client, out.server)
	if err != nil && (!errors.Is(err, errClocks) || oneClock(from, to)) {
		return result, fmt.Errorf("draygen from %s to %s: %w", from.Name, to.Name, err)
	}
	return result, nil
}

// genPrograms is one sender and one sink, and the sink's version.
func genPrograms(ctx context.Context, from, to Endpoint, o offer, d time.Duration) (clientServer, string, error) {
	sender, _, err := genTool(from).findAt(ctx, from)
	if err != nil {
		return clientServer{}, "", err
	}
	sink, version, err := genTool(to).findAt(ctx, to)
	if err != nil {
		return clientServer{}, "", err
	}
	s, err := genCommands(sender, sink, from, to, o, d)
	return s, version, err
}

// genCommands are the command lines of the two programs.
func genCommands(sender, receiver []string, from, to Endpoint, o offer, d time.Duration) (clientServer, error) {
	s := clientServer{from: from, to: to, ready: genReady, serverEnds: true, linger: genLinger, timeout: d + slack}
	stream := strconv.FormatUint(uint64(rand.Uint32N(math.MaxUint32-1)+1), 10)
	sink, source, target, err := o.ports(from, to)
	if err != nil {
		return s, err
	}
	if from.dpdk() || to.dpdk() {
		s.patience, s.timeout = dpdkWait(from, to)+slack, s.timeout+dpdkWait(from, to)
	}
	// Programs of other machines take long to start, and the sink ends after a time.
	s.together = from.Far != nil && to.Far != nil && !from.dpdk() && !to.dpdk()
	if s.together {
		s.patience = farPatience
	}
	if s.holds = o.opened; s.holds != nil && !from.opensFirst(to) {
		s.together = true
	}
	if s.together || from.opensFirst(to) {
		s.opened, target = genOpened, append(target, "--hold")
	}
	s.server = slices.Concat(receiver, []string{"sink"}, sink, []string{"--stream", stream, "--once"})
	s.server = append(s.server, o.slotOption()...)
	if to.Far != nil {
		// No signal can end it, and the next trial needs the port. Its result comes by then.
		s.linger, s.server = hangTimeout, append(s.server, "--duration", milliseconds(d+slack))
	}
	if to.Native && o.poll && !o.busy {
		s.server = append(s.server, "--spin", nativePoll.String())
	}
	s.client = slices.Concat(sender, []string{"send"}, source, target)
	s.client = append(append(s.client, "--stream", stream), o.traffic()...)
	if o.busy {
		s.server, s.client = append(s.server, "--busy"), append(s.client, "--busy")
	}
	if o.batch > 0 {
		limit := []string{"--batch", strconv.Itoa(o.batch)}
		s.server, s.client = append(s.server, limit...), append(s.client, limit...)
	}
	if o.perSec > 0 && o.slots == nil { // a sender in slots knows its windows
		s.client = append(s.client, "--catch-up", strconv.FormatInt(o.catchUp().Microseconds(), 10)+"us")
	}
	if o.warmup > 0 {
		s.client = append(s.client, "--warmup", strconv.Itoa(o.warmup))
	}
	if o.packets > 0 {
		s.client = append(s.client, "--packets", strconv.Itoa(o.packets))
	} else {
		s.client = append(s.client, "--duration", milliseconds(d))
	}
	return s.boundedDevices(), nil
}

// milliseconds is a duration in draygen's form.
func milliseconds(d time.Duration) string { return strconv.FormatInt(d.Milliseconds(), 10) + "ms" }

// genReady reports whether a sink misses nothing any more, or a sender begins.
func genReady(p *program) bool {
	return strings.Contains(string(p.out.bytes()), `"event":"ready"`)
}
