// SPDX-License-Identifier: Apache-2.0

package instrument

import (
	"context"
	"fmt"
	"strconv"
	"syscall"
	"time"

	"github.com/drayage/dray/internal/record"
)

// Load is UDP traffic that runs on a link while something else is measured.
type Load struct {
	session session
	client  *program
	server  *program
	stream  stream
	offered uint64
	drops   uint64 // of the receiver's namespace before the load
	tool    record.Instrument
}

// StartLoad offers bits per second of UDP payload, in datagrams that fill a
// packet, for at most longest. The caller must call Stop or Abort.
func StartLoad(ctx context.Context, from, to Endpoint, bits uint64, longest time.Duration) (*Load, error) {
	path, version, err := iperf.find(ctx)
	if err != nil {
		return nil, err
	}
	ports, err := freePorts(to, 1)
	if err != nil {
		return nil, err
	}
	u := stream{from: from, to: to, payload: fullPayload(from, to), rate: strconv.FormatUint(bits, 10), duration: longest}
	l := &Load{stream: u, session: u.session(path, ports[0]), offered: bits}
	l.tool = describe(iperf, version, l.session)
	if l.drops, err = receiverDrops(to.Place.Netns); err != nil {
		return nil, fmt.Errorf("load: %w", err)
	}
	if l.server, err = l.session.startServer(ctx); err != nil {
		return nil, fmt.Errorf("load: %w", err)
	}
	if l.client, err = launch(from.Place, l.session.client); err != nil {
		l.server.kill()
		return nil, fmt.Errorf("load: %w", err)
	}
	return l, nil
}

// stopTimeout bounds how long the sender may take to report after an
// interrupt: iperf 2 asks ten times, every 250 ms, for the receiver's answer.
const stopTimeout = 5 * time.Second

// Stop ends the load and says what it achieved, as the receiver saw it. An
// error means that the load did not run to this moment.
func (l *Load) Stop() (record.Load, error) {
	defer l.Abort()
	out := record.Load{Instrument: l.tool, Offered: l.offered}
	if l.client.within(0) {
		return out, fmt.Errorf("the load from %s to %s ended too early (%v): %q", l.stream.from.Name, l.stream.to.Name, l.client.err, l.client.words())
	}
	if l.server.within(0) {
		return out, fmt.Errorf("the load's receiver in %s ended too early (%v): %q", l.stream.to.Name, l.server.err, l.server.words())
	}
	l.client.signal(syscall.SIGINT)
	l.client.within(stopTimeout)
	l.session.endServer(l.server)
	l.Abort()
	report, err := parseIperf(l.server.out.bytes(), l.client.out.bytes())
	if err != nil {
		return out, fmt.Errorf("the load from %s to %s: %w", l.stream.from.Name, l.stream.to.Name, err)
	}
	drops, err := receiverDrops(l.stream.to.Place.Netns)
	if err != nil {
		return out, err
	}
	out.Sent, out.Lost = report.Sent, report.Sent-report.Received
	out.ReceiverDrops = min(drops-l.drops, out.Lost)
	delivered := report.Received + out.ReceiverDrops
	out.Achieved = perSecond(float64(delivered)*float64(8*l.stream.payload), report.span())
	return out, nil
}

// Abort kills the load. It may be called again, and after Stop.
func (l *Load) Abort() {
	l.client.kill()
	l.server.kill()
}
