// SPDX-License-Identifier: Apache-2.0

package instrument

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"time"

	"github.com/drayage/dray/internal/result/record"
	"github.com/drayage/dray/internal/spec/inventory"
)

// Qperf measures a closed loop of 1-byte requests and responses over TCP for
// Params.Duration, rounded up to whole seconds, with socket buffers of Params.Buffer.
type Qperf struct{}

var qperf = tool{name: "qperf", pkg: "qperf", ask: []string{"--version"}, version: regexp.MustCompile(`qperf ([0-9][0-9.]*)`)}

func (Qperf) Name() string                             { return qperf.name }
func (Qperf) Probe(ctx context.Context) inventory.Item { return qperf.probe(ctx) }

// Run measures transactions per second and the mean round trip.
func (Qperf) Run(ctx context.Context, from, to Endpoint, p Params) (record.Trial, error) {
	t := begin(record.QRequests, from, to)
	path, version, err := qperf.find(ctx)
	if err != nil {
		return t, err
	}
	ports, err := freePorts(to, 2)
	if err != nil {
		return t, err
	}
	control, data := strconv.Itoa(int(ports[0])), strconv.Itoa(int(ports[1]))
	s := clientServer{
		from: from, to: to,
		server:  []string{path, "-lp", control},
		client:  slices.Concat([]string{path, "-lp", control, "-ip", data}, qperfOptions(p), []string{from.scoped(to.IP).String(), "tcp_lat"}),
		listen:  socket{"tcp", ports[0]},
		timeout: p.Duration + connectTimeout + slack,
	}
	t.Instrument = describe(qperf, version, s)
	o, err := s.run(ctx)
	t.Start, t.Duration, t.Raw = o.start, o.duration, raw(o.client)
	if err != nil {
		return t, err
	}
	if t.Requests, err = parseQperf(o.client); err != nil {
		return t, fmt.Errorf("qperf from %s to %s: %w", from.Name, to.Name, err)
	}
	t.Duration = time.Duration(wholeSeconds(p.Duration)) * time.Second
	return t, nil
}

// qperfOptions are the client's options for the test, which it also tells the server.
func qperfOptions(p Params) []string {
	options := []string{"-t", strconv.Itoa(wholeSeconds(p.Duration)), "-to", strconv.Itoa(wholeSeconds(connectTimeout)), "-uu"}
	if p.Buffer > 0 {
		options = append(options, "-sb", strconv.Itoa(p.Buffer))
	}
	return options
}

var qperfLatency = regexp.MustCompile(`(?m)^tcp_lat:\s+latency\s+=\s+([0-9.]+) (ns|us|ms|sec)`)

// parseQperf reads the output of `qperf … tcp_lat`, whose latency is half the
// round trip.
func parseQperf(out []byte) (*record.Requests, error) {
	m := qperfLatency.FindSubmatch(out)
	if m == nil {
		return nil, fmt.Errorf("no latency in its output: %q", lastWords(out))
	}
	v, err := strconv.ParseFloat(string(m[1]), 64)
	if err != nil {
		return nil, fmt.Errorf("latency %q: %w", m[1], err)
	}
	unit := map[string]float64{"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "sec": 1}[string(m[2])]
	rtt, err := seconds("round trip", 2*v*unit)
	if err != nil {
		return nil, err
	}
	if rtt == 0 {
		return nil, fmt.Errorf("a latency of %s %s is impossible", m[1], m[2])
	}
	return &record.Requests{Protocol: "tcp", PerSecond: 1 / rtt.Seconds(), MeanRTT: rtt}, nil
}
