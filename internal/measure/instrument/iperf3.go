// SPDX-License-Identifier: Apache-2.0

package instrument

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/drayage/dray/internal/result/record"
	"github.com/drayage/dray/internal/spec/inventory"
)

// Iperf3 measures TCP throughput in one direction. It uses Params.Duration,
// rounded up to whole seconds, Params.Message and Params.Buffer.
type Iperf3 struct{}

var iperf3 = tool{name: "iperf3", pkg: "iperf3", ask: []string{"--version"}, version: regexp.MustCompile(`iperf (3\.[0-9.]+)`)}

func (Iperf3) Name() string                             { return iperf3.name }
func (Iperf3) Probe(ctx context.Context) inventory.Item { return iperf3.probe(ctx) }

// Run measures the goodput of one TCP stream, read at the receiver.
func (Iperf3) Run(ctx context.Context, from, to Endpoint, p Params) (record.Trial, error) {
	t := begin(record.QThroughput, from, to)
	s, version, err := iperf3Programs(ctx, from, to, p)
	if err != nil {
		return t, err
	}
	t.Instrument = describe(iperf3, version, s)
	o, err := s.run(ctx)
	t.Start, t.Duration, t.Raw = o.start, o.duration, raw(o.client)
	// With -J a failure's reason is in the output, so parse that first.
	result, parseErr := parseIperf3(o.client)
	switch {
	case err != nil && len(result.Error) > 0:
		return t, fmt.Errorf("%w: %s", err, result.Error)
	case err != nil:
		return t, err
	case parseErr != nil:
		return t, fmt.Errorf("iperf3 from %s to %s: %w", from.Name, to.Name, parseErr)
	}
	t.Duration = result.Duration
	t.Throughput = &result.Throughput
	return t, nil
}

// iperf3Programs are a client at one end and a server at the other, and its version.
func iperf3Programs(ctx context.Context, from, to Endpoint, p Params) (clientServer, string, error) {
	client, _, err := iperf3.findAt(ctx, from)
	if err != nil {
		return clientServer{}, "", err
	}
	server, version, err := iperf3.findAt(ctx, to)
	if err != nil {
		return clientServer{}, "", err
	}
	s := clientServer{from: from, to: to, serverEnds: true, timeout: p.Duration + connectTimeout + slack}
	number := farPort()
	if to.Far == nil {
		ports, err := freePorts(to, 1)
		if err != nil {
			return s, "", err
		}
		number = ports[0]
		s.listen = socket{"tcp", number}
	} else {
		s.ready, s.linger = iperf3Listens, hangTimeout
	}
	port := strconv.Itoa(int(number))
	s.server = to.bounded(s.timeout+listenTimeout, slices.Concat(server, []string{"-s", "-1", "-B", to.scoped(to.IP).String(), "-p", port, "--forceflush"}))
	s.client = from.bounded(s.timeout, slices.Concat(client, []string{"-c", from.scoped(to.IP).String(), "-B", from.scoped(from.IP).String(), "-p", port, "-J",
		"-t", strconv.Itoa(wholeSeconds(p.Duration)), "-i", "0.5", "--connect-timeout", strconv.FormatInt(connectTimeout.Milliseconds(), 10)}, iperf3Sizes(p)))
	return s, version, nil
}

// iperf3Sizes are the client's options for writes and socket buffers; it tells the
// server, which has the same.
func iperf3Sizes(p Params) []string {
	var sizes []string
	if p.Message > 0 {
		sizes = append(sizes, "-l", strconv.Itoa(p.Message))
	}
	if p.Buffer > 0 {
		sizes = append(sizes, "-w", strconv.Itoa(p.Buffer))
	}
	return sizes
}

// iperf3Listens reports whether a server says so.
func iperf3Listens(p *program) bool {
	return strings.Contains(string(p.out.bytes()), "Server listening")
}
