// SPDX-License-Identifier: Apache-2.0

package node

import "time"

// Bounds on what a function's output costs its reader. A function that prints faster
// fills its pipe, then waits in write: the cost is its own.
const (
	outputBurst  = 8 << 20  // bytes at once
	outputSecond = 1 << 20  // bytes a second after that
	readCost     = 16 << 10 // a read counts as at least so many bytes: a packet pipe returns one write at a time
)

// throttle is a token bucket of bytes. The zero throttle is full.
type throttle struct {
	paid time.Time // when everything read so far has been paid for
}

// spend counts a read. It returns how long to wait before the next one.
func (t *throttle) spend(now time.Time, bytes int) time.Duration {
	if t.paid.Before(now) {
		t.paid = now
	}
	t.paid = t.paid.Add(worth(max(bytes, readCost)))
	return max(0, t.paid.Sub(now)-worth(outputBurst))
}

// worth is the time to pay for that many bytes.
func worth(bytes int) time.Duration { return time.Duration(bytes) * time.Second / outputSecond }
