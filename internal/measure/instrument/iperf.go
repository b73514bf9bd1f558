// SPDX-License-Identifier: Apache-2.0

package instrument

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"time"

	"github.com/drayage/dray/internal/result/record"
	"github.com/drayage/dray/internal/spec/inventory"
)

// Iperf measures UDP delivery with iperf 2 for Params.Duration: at
// Params.PacketRate with 64-byte frames if set, else at Params.Bitrate with
// datagrams of Params.Message bytes, or that fill a packet.
type Iperf struct{}

var iperf = tool{name: "iperf", pkg: "iperf", ask: []string{"-v"}, version: regexp.MustCompile(`iperf version (2\.[0-9.]+)`)}

func (Iperf) Name() string                             { return iperf.name }
func (Iperf) Probe(ctx context.Context) inventory.Item { return iperf.probe(ctx) }

// socketBuffer is requested for the receiving socket. Every kernel allows it by
// default (net.core.rmem_max); it is twice a socket's default.
const socketBuffer = "208K"

// loadTolerance is how far an offered rate may be missed (measurement rule 5).
const loadTolerance = 0.05

// stream is one UDP stream of iperf 2.
type stream struct {
	from, to Endpoint
	payload  int    // bytes
	rate     string // in the form of iperf's -b
	duration time.Duration
}

// programs are iperf 2's for that stream.
func (u stream) programs(path string, port uint16) clientServer {
	p := strconv.Itoa(int(port))
	s := clientServer{
		from: u.from, to: u.to,
		server: []string{path, "-s", "-u", "-e", "-P", "1", "-w", socketBuffer, "-p", p},
		client: []string{path, "-c", u.from.scoped(u.to.IP).String(), "-u", "-e", "-p", p,
			"-l", strconv.Itoa(u.payload), "-b", u.rate, "-t", strconv.FormatFloat(u.duration.Seconds(), 'f', 2, 64)},
		listen:     socket{"udp", port},
		serverEnds: true,
		timeout:    u.duration + slack,
	}
	if ipHeader(u.to.IP) == ipv6Header {
		s.server, s.client = append(s.server, "-V"), append(s.client, "-V")
	}
	if !u.to.IP.IsLinkLocalUnicast() { // which it cannot bind to
		s.server, s.client = append(s.server, "-B", u.to.IP.String()), append(s.client, "-B", u.from.IP.String())
	}
	return s
}

// wanted is the stream that the parameters request, and its offered load.
func wanted(from, to Endpoint, p Params) (stream, record.Quantity, record.Delivery) {
	u := stream{from: from, to: to, duration: p.Duration}
	if p.PacketRate > 0 {
		u.payload, u.rate = smallPayload, strconv.FormatUint(p.PacketRate, 10)+"pps"
		return u, record.QPacketRate, record.Delivery{OfferedBits: p.PacketRate * 8 * smallPayload, OfferedRate: p.PacketRate}
	}
	u.payload, u.rate = cmp.Or(p.Message, fullPayload(from, to)), strconv.FormatUint(p.Bitrate, 10)
	return u, record.QDelivery, record.Delivery{OfferedBits: p.Bitrate, OfferedRate: p.Bitrate / uint64(8*max(1, u.payload))}
}

// Run offers UDP datagrams and reads the result at the receiver.
func (Iperf) Run(ctx context.Context, from, to Endpoint, p Params) (record.Trial, error) {
	t, _, err := runIperf(ctx, from, to, p)
	return t, err
}

// Stamped does the same, and returns the mean of the receive stamps minus the send
// stamps: the one-way latency if both ends read one clock, otherwise also the
// difference of their clocks. The trial says nothing of it.
func (Iperf) Stamped(ctx context.Context, from, to Endpoint, p Params) (record.Trial, time.Duration, error) {
	t, report, err := runIperf(ctx, from, to, p)
	if err == nil && report.Stamped == nil {
		err = fmt.Errorf("iperf from %s to %s reports no latency", from.Name, to.Name)
	}
	if err != nil {
		return t, 0, err
	}
	return t, *report.Stamped, nil
}

func runIperf(ctx context.Context, from, to Endpoint, p Params) (record.Trial, iperfReport, error) {
	var report iperfReport
	u, quantity, offered := wanted(from, to, p)
	t := begin(quantity, from, to)
	if offered.OfferedBits == 0 {
		return t, report, errors.New("iperf: no rate to offer")
	}
	path, version, err := iperf.find(ctx)
	if err != nil {
		return t, report, err
	}
	ports, err := freePorts(to, 1)
	if err != nil {
		return t, report, err
	}
	s := u.programs(path, ports[0])
	t.Instrument = describe(iperf, version, s)
	before, err := receiverDrops(ctx, to)
	if err != nil {
		return t, report, err
	}
	o, err := s.run(ctx)
	t.Start, t.Duration, t.Raw = o.start, o.duration, raw(o.server, o.client)
	if err != nil {
		return t, report, err
	}
	after, err := receiverDrops(ctx, to)
	if err != nil {
		return t, report, err
	}
	if report, err = parseIperf(o.server, o.client); err != nil {
		return t, report, fmt.Errorf("iperf from %s to %s: %w", from.Name, to.Name, err)
	}
	t.Duration = report.span()
	t.Delivery = report.delivery(offered, u.payload, to, after-before)
	if missed(t.Delivery.SentRate, t.Delivery.OfferedRate) {
		t.Marks = append(t.Marks, record.MarkLoadMissed)
	}
	return t, report, nil
}

// delivery is the report in the record's terms.
func (r iperfReport) delivery(offered record.Delivery, payload int, to Endpoint, drops uint64) *record.Delivery {
	d := offered
	bits := float64(8 * payload)
	d.DatagramBytes, d.FrameBytes = payload, frameBytes(payload, to.IP)
	d.Sent, d.Received, d.Lost, d.Reordered = r.Sent, r.Received, r.Sent-r.Received, r.Reordered
	d.ReceiverDrops = min(drops, d.Lost)
	d.Jitter = r.Jitter
	d.SentBits, d.SentRate = perSecond(float64(r.Sent)*bits, r.Sending), perSecond(float64(r.Sent), r.Sending)
	d.ReceivedBits, d.PacketRate = perSecond(float64(r.Received)*bits, r.span()), perSecond(float64(r.Received), r.span())
	return &d
}

// missed reports whether a rate is further from the request than rule 5 allows.
func missed(got, asked uint64) bool {
	diff := float64(got) - float64(asked)
	return diff > loadTolerance*float64(asked) || diff < -loadTolerance*float64(asked)
}
