// SPDX-License-Identifier: Apache-2.0

package broker_test

import (
	"errors"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/drayage/dray/internal/link/broker/wire"
)

// TestANewConnectionReplacesTheOldestSilentOne: of 16 connections without HELLO, the port
// keeps the last 7 when a 17th says HELLO.
func TestANewConnectionReplacesTheOldestSilentOne(t *testing.T) {
	s, _, l := serveLink(t)
	var all []*raw
	for range 16 {
		all = append(all, s.raw(l.Ends[0]))
	}
	s.welcomed(l.Ends[0])
	for i, r := range all {
		if text := r.replaced(); strings.Contains(text, "newer") != (i < 9) {
			t.Errorf("connection %d has %q", i+1, text)
		}
	}
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
