// SPDX-License-Identifier: Apache-2.0

package broker

import (
	"fmt"
	"reflect"
	"slices"
	"time"

	"github.com/drayage/dray/internal/link/broker/wire"
)

// relink moves the link to the given configuration. The ends stay on the old
// generation until they are live on the next. They queue by other traffic classes at once.
func (l *link) relink(to Link) error {
	if err := l.entry.Link.samePorts(&to); err != nil {
		return err
	}
	come, err := l.bindComing(&to)
	if err != nil {
		return err
	}
	before, moved := l.entry.Link, l.entry
	moved.Link, moved.Inode = to, 0
	if err := l.broker.journal.save(&moved); err != nil {
		for _, e := range come { // the link has not changed
			e.close()
		}
		return err
	}
	l.entry, l.adoptable = moved, false
	l.closeLeaving()
	l.endGeneration(to.afterMove())
	for _, e := range l.ends {
		switch c := e.conn; {
		case c == nil:
		case !c.welcomed: // it was waiting for its peer
			e.welcome(c, false)
		default:
			if err := writeSampleShift(c.telemetry, to.sampleShift()); err != nil {
				return err
			}
			if !reflect.DeepEqual(before.Ends[e.side].Classes, e.spec().Classes) {
				e.sendClasses(c, false)
			}
		}
	}
	l.retryAfter, l.bytes.paid = time.Time{}, time.Time{} // the limits are for ends, not operators; the new memory may be smaller
	return nil
}

// bindComing binds the ports that come to this host.
func (l *link) bindComing(to *Link) (come []*end, err error) {
	for i, e := range l.ends {
		if e.spec().here() || !to.Ends[i].here() {
			continue
		}
		if err := e.bind(&to.Ends[i]); err != nil {
			for _, e := range come {
				e.close()
			}
			return nil, fmt.Errorf("link %s: %w", l.entry.Link.Name, err)
		}
		come = append(come, e)
	}
	return come, nil
}

// closeLeaving closes the ports that are no longer on this host.
func (l *link) closeLeaving() {
	for _, e := range l.ends {
		if e.spec().here() {
			continue
		}
		if e.conn != nil && !e.conn.failed {
			e.say(e.conn, wire.Message{Type: wire.TypeBye, Body: &wire.Bye{Reason: wire.ByeClosing}})
		}
		e.loseCapture()
		e.close()
	}
}

// afterMove is what the ends learn about the generation after a move to l.
// Until the other port comes, a link of shared memory has none.
func (l *Link) afterMove() (reason, next uint32) {
	switch {
	case l.Kind == KindNetdev:
		return wire.RebindMoves, wire.KindNetdev
	case slices.ContainsFunc(l.Ends, func(e End) bool { return !e.here() }):
		return wire.RebindLeft, wire.KindNone
	}
	return wire.RebindMoves, wire.KindShm
}
