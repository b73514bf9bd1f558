// SPDX-License-Identifier: Apache-2.0

package instrument

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"time"

	"github.com/drayage/dray/internal/result/record"
)

// Load is a background stream on a link during another measurement.
type Load struct {
	programs clientServer
	client   *program
	server   *program
	offer    offer
	bits     uint64
	tool     record.Instrument
}

// StartLoad offers bits per second of payload, in packets that fill the MTU, for
// at most longest. The caller must call Stop or Abort.
func StartLoad(ctx context.Context, from, to Endpoint, bits uint64, longest time.Duration) (*Load, error) {
	o, err := Draygen{record.QStream}.wanted(from, to, Params{Bitrate: bits})
	if err != nil {
		return nil, err
	}
	l := &Load{offer: o, bits: bits}
	var version string
	if l.programs, version, err = genPrograms(ctx, from, to, o, longest); err != nil {
		return nil, err
	}
	l.tool = describe(draygen, version, l.programs)
	if l.client, l.server, _, err = l.programs.start(ctx); err != nil {
		return nil, fmt.Errorf("load: %w", genError(err, from, to))
	}
	if err := await(ctx, l.client, genReady, l.programs.limit()); err != nil {
		l.Abort()
		return nil, fmt.Errorf("load: %w", genError(err, from, to))
	}
	return l, nil
}

// Stop ends the load and returns the load achieved, as the receiver saw it. An
// error means that the load ended before now.
func (l *Load) Stop() (record.Load, error) {
	defer l.Abort()
	out := record.Load{Instrument: l.tool, Offered: l.bits}
	from, to := l.programs.from.Name, l.programs.to.Name
	if l.client.within(0) {
		return out, fmt.Errorf("the load from %s to %s ended too early (%v): %q", from, to, l.client.err, l.client.words())
	}
	if l.server.within(0) {
		return out, fmt.Errorf("the load's receiver in %s ended too early (%v): %q", to, l.server.err, l.server.words())
	}
	l.client.signal(syscall.SIGINT)
	l.client.within(hangTimeout)
	l.programs.endServer(l.server)
	l.Abort()
	r, err := parseDraygen(l.client.out.bytes(), l.server.out.bytes())
	if err != nil && (!errors.Is(err, errClocks) || oneClock(l.programs.from, l.programs.to)) {
		return out, fmt.Errorf("the load from %s to %s: %w", from, to, err)
	}
	d := r.delivery(record.QStream, l.offer, Params{Bitrate: l.bits})
	out.Sent, out.Lost, out.ReceiverDrops = d.Sent, d.Lost, d.ReceiverDrops
	delivered := d.Received + d.ReceiverDrops
	out.Achieved = perSecond(float64(delivered)*float64(8*d.DatagramBytes), r.span())
	return out, nil
}

// Abort kills the load. It may be called again, and after Stop.
func (l *Load) Abort() {
	l.client.kill()
	l.server.kill()
}
