// SPDX-License-Identifier: Apache-2.0

package instrument

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"github.com/drayage/dray/internal/result/record"
)

// Loop sends from one port of a function and receives at another, in one thread.
// A switch or function between them has the other CPUs. It takes Params as
// QFrames does. Both ports are native, or both are DPDK ports: from.EAL then has
// both devices.
func (g Draygen) Loop(ctx context.Context, from, to Endpoint, p Params) (record.Trial, error) {
	t := begin(record.QFrames, from, to)
	o, err := g.frames(from, to, p)
	if err != nil {
		return t, err
	}
	path, version, err := genTool(from).find(ctx)
	if err != nil {
		return t, err
	}
	s, err := loopPrograms(path, from, to, o, p.Duration)
	if err != nil {
		return t, err
	}
	t.Instrument = describe(genTool(from), version, s)
	out, err := s.run(ctx)
	t.Start, t.Duration, t.Raw = out.start, out.duration, raw(genSummary(out.client))
	if err != nil {
		return t, genError(err, from, to)
	}
	result, err := parseLoop(out.client)
	if err != nil {
		return t, fmt.Errorf("draygen from %s to %s: %w", from.Name, to.Name, err)
	}
	t.Duration = result.span()
	t.Bench = &record.Bench{}
	if t.Bench.Span, err = result.stream(); err != nil {
		return t, err
	}
	t.Delivery, t.OneWay = result.delivery(record.QFrames, o, p), result.oneWay()
	t.Marks = append(t.Marks, result.marks(t)...)
	return t, nil
}

// marks are doubts that the stream's own figures raise.
func (r genResult) marks(t record.Trial) []string {
	var marks []string
	if t.Delivery.OfferedRate > 0 && missed(t.Delivery.SentRate, t.Delivery.OfferedRate) {
		marks = append(marks, record.MarkLoadMissed)
	}
	if r.starved() {
		marks = append(marks, record.MarkOversubscribed)
	}
	if lateShare(r.lateness, lateSend) > 0.01 {
		marks = append(marks, record.MarkLate)
	}
	return marks
}

// loopPrograms is the one program that has both ports.
func loopPrograms(path string, from, to Endpoint, o offer, d time.Duration) (clientServer, error) {
	s := clientServer{from: from, to: to, timeout: d + slack}
	if !from.framed() || from.dpdk() != to.dpdk() || from.Ports != to.Ports {
		return s, errors.New("draygen opens both ports of a loop: both must belong to one function, and both must be native or both DPDK")
	}
	port, err := genPort(from, dpdkWait(from, to))
	if err != nil {
		return s, err
	}
	other := "dray:" + to.Port
	if to.dpdk() {
		other, s.timeout = "dpdk:"+to.Device, s.timeout+dpdkWait(from, to)
	}
	stream := strconv.FormatUint(uint64(rand.Uint32N(math.MaxUint32-2)+1), 10)
	s.client = append(append([]string{path, "loop"}, port...), "--to-port", other)
	if to.IP.IsValid() {
		s.client = append(s.client, "--to", netip.AddrPortFrom(to.IP, genDiscard).String())
	}
	if from.dpdk() && from.IP.IsValid() { // else routers refuse the packets
		s.client = append(s.client, "--from", from.IP.String())
	}
	if to.MAC != "" {
		s.client = append(s.client, "--to-mac", to.MAC)
	}
	s.client = append(append(s.client, o.around()...), "--stream", stream, "--size", o.size(), "--rate", o.rate, "--duration", strconv.FormatInt(d.Milliseconds(), 10)+"ms",
		"--warmup", strconv.Itoa(o.warmup), "--busy")
	if o.perSec > 0 {
		s.client = append(s.client, "--catch-up", strconv.FormatInt(o.catchUp().Microseconds(), 10)+"us")
	}
	return s, nil
}

// parseLoop reads what a loop printed.
func parseLoop(out []byte) (genResult, error) {
	line, err := lastResult(out, "loop")
	if err != nil {
		return genResult{}, err
	}
	if line.Forward == nil {
		return genResult{}, fmt.Errorf("a loop without its path: %.100s", strings.TrimSpace(string(out)))
	}
	sender, sink := line.Forward.Sender, line.Forward.Sink
	// One thread is both ends: count its time once.
	sender.CPUNs, sender.WallNs, sender.CPUs = line.CPUNs, line.WallNs, line.CPUs
	return joined(sender, sink)
}
