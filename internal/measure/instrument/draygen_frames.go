// SPDX-License-Identifier: Apache-2.0

package instrument

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/drayage/dray/internal/host"
	"github.com/drayage/dray/internal/result/record"
)

// genMixed is the mean length of draygen's IMIX without FCS, in bytes: 7 frames
// of 60, 4 of 590 and 1 of 1514.
const genMixed = 4294.0 / 12

// genMaxWarmup is the number of warm-up packets for a stream without a rate.
const genMaxWarmup = 1000

var errEncapsulated = errors.New("draygen: only packets of IPv4 are encapsulated")

// frames is a matrix load: frames of Params.Frame bytes, at Params.PacketRate or
// as fast as the port accepts.
func (g Draygen) frames(from, to Endpoint, p Params) (offer, error) {
	o := offer{frame: p.Frame, ip6: ipHeader(to.IP) == ipv6Header, rate: "max", warmup: genMaxWarmup, poll: p.Poll, busy: p.Busy, batch: p.Batch, encap: p.Encap}
	if o.ip6 && o.encap != nil {
		return o, errEncapsulated
	}
	largest := o.frame
	if p.Frame == 0 {
		o.mixed, o.frame, largest = true, int(math.Round(genMixed)), 1514
	}
	if o.frame < o.smallest() || largest > min(from.MTU, to.MTU)+genMAC {
		return o, fmt.Errorf("draygen: frames of up to %d bytes do not fit ports with an MTU of %d, or hold no header", largest, min(from.MTU, to.MTU))
	}
	if p.PacketRate > 0 {
		o.rate, o.perSec = strconv.FormatUint(p.PacketRate, 10)+"pps", float64(p.PacketRate)
		o.warmup = int(math.Ceil(o.perSec * genWarmup.Seconds()))
	}
	return o, nil
}

// size is the frame length in draygen's form.
func (o offer) size() string {
	if o.mixed {
		return "imix"
	}
	return strconv.Itoa(o.frame)
}

// stream is draygen's report of its sending times, and of its own CPU time.
func (r genResult) stream() (*record.Span, error) {
	s := &record.Span{
		Start: time.Duration(r.sender.StartedNs), End: time.Duration(r.sender.EndedNs),
		Sender: share(r.sender.CPUNs, r.sender.WallNs), Sink: share(r.sink.CPUNs, r.sink.WallNs),
	}
	if s.Start <= 0 || s.End < s.Start {
		return nil, fmt.Errorf("the sender claims to have sent from %v to %v", s.Start, s.End)
	}
	return s, nil
}

func share(part, whole int64) float64 {
	if whole <= 0 || part < 0 {
		return 0
	}
	return float64(part) / float64(whole)
}

// nullDevice is EAL's arguments for a device that discards its packets.
const nullDevice = "--no-huge --no-shconf -m 256 --no-pci --no-telemetry --vdev net_null0"

// Ceiling measures draygen without a port: how fast it makes frames of this many
// bytes without FCS (0: IMIX), and how fast it parses them. onDPDK uses the
// generator for DPDK devices, which sends into net_null.
func (g Draygen) Ceiling(ctx context.Context, onDPDK bool, frame int, d time.Duration) (record.Trial, error) {
	t := record.Trial{Quantity: record.QCeiling, Marks: []string{}, Start: time.Now()}
	program, port := draygen, []string{"--port", "null"}
	if onDPDK {
		program, port = draygenDPDK, []string{"--port", "dpdk:net_null0", "--eal", nullDevice, "--to", "198.18.0.2:5010", "--mtu", strconv.Itoa(max(1500, frame-genMAC))}
	}
	path, version, err := program.find(ctx)
	if err != nil {
		return t, err
	}
	o := offer{frame: frame, mixed: frame == 0}
	common := []string{"--busy", "--duration", strconv.FormatInt(d.Milliseconds(), 10) + "ms"}
	send := append(append([]string{path, "send"}, port...), append(common, "--rate", "max", "--size", o.size())...)
	sink := append([]string{path, "sink", "--port", "null", "--size", o.size()}, common...)
	t.Instrument = record.Instrument{Name: program.name, Version: version, Client: send, Server: sink, Placement: "host program, one after the other"}
	sent, err := alone(ctx, "send", send, d+slack)
	if err != nil {
		return t, err
	}
	received, err := alone(ctx, "sink", sink, d+slack)
	if err != nil {
		return t, err
	}
	t.Duration = time.Since(t.Start)
	t.Bench = &record.Bench{Ceiling: &record.Ceiling{Instrument: program.name, Send: sent.SendRate, Receive: received.ReceiveRate}}
	return t, nil
}

// alone runs one draygen that needs no peer.
func alone(ctx context.Context, role string, argv []string, timeout time.Duration) (genLine, error) {
	answer, err := host.Helper{Program: argv[0], Args: argv[1:], Limit: timeout}.Run(ctx)
	if err != nil {
		return genLine{}, fmt.Errorf("draygen without a port: %w", err)
	}
	return lastResult([]byte(answer.Out), role)
}

// FindOwn finds a program of this project: next to this one, or in the PATH.
func FindOwn(name string) (string, error) {
	return tool{name: name, own: true}.look()
}

var limit = tool{name: "dray-limit", own: true}

// PhysicalLimit measures the most that two cores of this machine can do now. No
// other program should be busy meanwhile.
func PhysicalLimit(ctx context.Context) (*record.Limit, error) {
	path, err := FindOwn(limit.name)
	if err != nil {
		return nil, err
	}
	answer, err := host.Helper{Program: path, Limit: slack}.Run(ctx)
	if err != nil {
		return nil, err
	}
	return parseLimit([]byte(answer.Out))
}

func parseLimit(out []byte) (*record.Limit, error) {
	var l struct {
		Format int     `json:"dray_limit"`
		Ring   float64 `json:"ring_pps"`
		Line   float64 `json:"line_ns"`
		TSC    float64 `json:"tsc_hz"`
	}
	if err := json.Unmarshal(out, &l); err != nil {
		return nil, fmt.Errorf("%s: malformed output: %w", limit.name, err)
	}
	if l.Format != 1 || !(l.Ring > 0 && l.Line > 0 && l.TSC > 0) {
		return nil, fmt.Errorf("%s: impossible output %q: rebuild it with `make build`", limit.name, lastWords(out))
	}
	return &record.Limit{Ring: l.Ring, Line: l.Line, TSC: l.TSC}, nil
}
