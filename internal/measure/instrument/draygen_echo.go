// SPDX-License-Identifier: Apache-2.0

package instrument

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/drayage/dray/internal/result/record"
)

// echoWarmup is the number of round trips before the first that counts.
const echoWarmup = 100

// Echo measures round trips between two ports of one kind: the far end returns
// each packet, and the next is sent when it arrives. Frames are of Params.Frame
// bytes without FCS.
func (g Draygen) Echo(ctx context.Context, from, to Endpoint, p Params) (record.Trial, error) {
	t := begin(record.QLatency, from, to)
	o, err := g.frames(from, to, Params{Frame: p.Frame, Busy: p.Busy})
	if err != nil {
		return t, err
	}
	o.warmup = echoWarmup
	s, version, err := genPrograms(ctx, from, to, o, p.Duration)
	if err != nil {
		return t, err
	}
	if err := s.echo(); err != nil {
		return t, err
	}
	t.Instrument = describe(genTool(from), version, s)
	out, err := s.run(ctx)
	t.Start, t.Duration, t.Raw = out.start, out.duration, raw(genSummary(out.client), genSummary(out.server))
	if err != nil {
		return t, genError(err, from, to)
	}
	r, err := parseEcho(out.client, o)
	if err != nil {
		return t, fmt.Errorf("draygen from %s to %s and back: %w", from.Name, to.Name, err)
	}
	t.Latency, t.Duration = r.Latency, r.took
	if sink, err := lastResult(out.server, "sink"); err == nil && (genResult{sender: r.line, sink: sink}).starved() {
		t.Marks = append(t.Marks, record.MarkOversubscribed)
	}
	return t, nil
}

// echo turns a one-way measurement into a round-trip one.
func (s *clientServer) echo() error {
	i := slices.Index(s.client, "send")
	if i < 0 || s.opened != nil {
		return errors.New("draygen measures no round trips over this transport")
	}
	s.client[i] = "ping"
	s.client, s.server = append(s.client, "--closed"), append(s.server, "--reflect")
	return nil
}

// echoResult is the output of an echo's requesting end.
type echoResult struct {
	*record.Latency
	line genLine
	took time.Duration
}

// parseEcho reads that output.
func parseEcho(out []byte, o offer) (echoResult, error) {
	line, err := lastResult(out, "ping")
	r := echoResult{line: line, took: time.Duration(line.ElapsedNs)}
	switch {
	case err != nil:
		return r, err
	case line.Sent == 0 || line.Received == 0:
		return r, fmt.Errorf("of %d packets %d came back", line.Sent, line.Received)
	case line.Received > line.Sent:
		return r, fmt.Errorf("%d different packets came back of %d: impossible", line.Received, line.Sent)
	case line.ElapsedNs < 0 || line.ElapsedNs > int64(maxTrial):
		return r, errors.New("impossible times in its output")
	}
	h, err := line.RoundTrip.record("round_trip", line.Received)
	if err != nil {
		return r, err
	}
	if uint64(h.Total()) != line.Received || line.RoundTrip.Min == nil || *line.RoundTrip.Min <= 0 {
		return r, fmt.Errorf("%d packets came back, and %d times of them", line.Received, h.Total())
	}
	r.Latency = &record.Latency{
		Histogram: h, Sent: line.Sent, Lost: line.Sent - line.Received, Duplicated: line.Duplicates, Reordered: line.Reordered,
		MessageBytes: o.frame - o.headers(), MinRTT: time.Duration(*line.RoundTrip.Min),
	}
	return r, nil
}
