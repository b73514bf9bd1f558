// SPDX-License-Identifier: Apache-2.0

package instrument

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strconv"

	"github.com/drayage/dray/internal/result/record"
	"github.com/drayage/dray/internal/spec/inventory"
)

// Ping tests with iputils ping whether a packet of Params.MTU bytes, and its
// answer, pass unfragmented.
type Ping struct{}

var ping = tool{name: "ping", pkg: "iputils-ping", ask: []string{"-V"}, version: regexp.MustCompile(`iputils (\S+)`)}

func (Ping) Name() string                             { return ping.name }
func (Ping) Probe(ctx context.Context) inventory.Item { return ping.probe(ctx) }

const (
	pingCount = 3 // so one lost packet does not decide
	maxPacket = 65535
)

// Run tries the wanted size, and if that does not pass, finds the largest that
// does. The peer's kernel answers.
func (Ping) Run(ctx context.Context, from, to Endpoint, p Params) (record.Trial, error) {
	t := begin(record.QPathMTU, from, to)
	smallest := ipHeader(to.IP) + icmpHeader
	if p.MTU < smallest || p.MTU > maxPacket {
		return t, fmt.Errorf("ping: a packet of %d bytes is impossible: at least %d, at most %d", p.MTU, smallest, maxPacket)
	}
	path, version, err := ping.find(ctx)
	if err != nil {
		return t, err
	}
	probe := func(size int) (bool, error) {
		s := clientServer{from: from, to: to, timeout: hangTimeout, client: []string{path, "-n", "-M", "do", "-c", strconv.Itoa(pingCount),
			"-i", "0.05", "-W", "0.5", "-s", strconv.Itoa(size - smallest), from.scoped(to.IP).String()}}
		o, err := s.run(ctx)
		if len(t.Instrument.Client) == 0 {
			t.Instrument, t.Start = describe(ping, version, s), o.start
		}
		t.Duration += o.duration
		t.Raw = raw([]byte(t.Raw), o.client)
		received, parseErr := parsePing(o.client)
		if parseErr != nil {
			return false, errors.Join(err, parseErr)
		}
		// ping exits with 1 if no answer came: that is a result.
		return received > 0, ctx.Err()
	}
	if t.PathMTU, err = findMTU(probe, smallest, p.MTU); err != nil {
		return t, fmt.Errorf("ping from %s to %s: %w", from.Name, to.Name, err)
	}
	return t, nil
}

// findMTU tries the wanted size, and if that does not pass, finds the largest that does.
// A busy machine can lose all packets of one probe, and a switch may begin to serve a new
// device only after one, so a size is too large only if two probes fail.
func findMTU(probe func(int) (bool, error), smallest, wanted int) (*record.PathMTU, error) {
	twice := func(size int) (bool, error) {
		if passed, err := probe(size); passed || err != nil {
			return passed, err
		}
		return probe(size)
	}
	passed, err := twice(wanted)
	if err != nil {
		return nil, err
	}
	size, err := largest(twice, passed, smallest, wanted)
	if err != nil {
		return nil, err
	}
	return &record.PathMTU{Wanted: wanted, Passed: passed, Largest: size}, nil
}

// largest bisects between the smallest packet and the wanted one; 0 if not
// even the smallest passes.
func largest(probe func(int) (bool, error), passed bool, low, high int) (int, error) {
	if passed {
		return high, nil
	}
	if ok, err := probe(low); err != nil || !ok {
		return 0, err
	}
	for high-low > 1 {
		mid := (low + high) / 2
		ok, err := probe(mid)
		if err != nil {
			return 0, err
		}
		if ok {
			low = mid
		} else {
			high = mid
		}
	}
	return low, nil
}

var pingTotal = regexp.MustCompile(`(?m)^([0-9]+) packets transmitted, ([0-9]+) received`)

// pingNoRoute is ping's only message if the sender's interface is down: no packet
// can pass then.
var pingNoRoute = regexp.MustCompile(`(?m)^ping: (connect|sendmsg): Network is unreachable$`)

// parsePing returns how many answers came.
func parsePing(out []byte) (int, error) {
	m := pingTotal.FindSubmatch(out)
	if m == nil && pingNoRoute.Match(out) {
		return 0, nil
	}
	if m == nil {
		return 0, fmt.Errorf("no totals in its output: %q", lastWords(out))
	}
	received, err := strconv.Atoi(string(m[2]))
	if err != nil || received > pingCount {
		return 0, fmt.Errorf("impossible totals %q", m[0])
	}
	return received, nil
}
