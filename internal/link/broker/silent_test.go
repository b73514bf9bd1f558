// SPDX-License-Identifier: Apache-2.0

package broker_test

import (
	"errors"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/drayage/dray/internal/link/broker"
	"github.com/drayage/dray/internal/link/broker/wire"
)

// TestANewConnectionReplacesTheOldestSilentOne: of 16 connections without HELLO, the port
// keeps the last 7 when a 17th says HELLO.
func TestANewConnectionReplacesTheOldestSilentOne(t *testing.T) {
	s, _, l := serveLink(t)
	// On a machine that stands still for 2 s, the time-out of HELLO comes first.
	until(t, "replaced", func() bool { return s.replaces(l.Ends[0], 16, 9) })
}

// replaces reports whether silent connections lose their places to newer ones: so many of
// them, the oldest.
func (s *fixture) replaces(e broker.End, silent, gone int) bool {
	s.t.Helper()
	var all []*raw
	for range silent {
		all = append(all, s.raw(e))
	}
	honest := s.welcomed(e)
	is := true
	for i, r := range all {
		is = is && strings.Contains(r.replaced(), "newer") == (i < gone)
		r.hangUp()
	}
	honest.hangUp()
	return is
}

// replaced is the text of the ERROR that has come; "" if none has.
func (r *raw) replaced() string {
	r.t.Helper()
	b := make([]byte, wire.MaxMessage)
	n, _, err := unix.Recvfrom(r.fd, b, unix.MSG_DONTWAIT)
	if errors.Is(err, unix.EAGAIN) {
		return ""
	}
	m, err := wire.Parse(b[:max(n, 0)], 0, wire.FromBroker)
	body, is := m.Body.(*wire.Error)
	if err != nil || !is {
		r.t.Fatalf("instead of an ERROR: %+v, %v", m, err)
	}
	return wire.Text(body.Text[:])
}
