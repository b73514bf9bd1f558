// SPDX-License-Identifier: Apache-2.0

package broker

import "time"

// bucket is a token bucket: burst events at once, then one per interval. The
// zero bucket is full.
type bucket struct {
	burst int
	every time.Duration // interval between tokens
	spent int
	since time.Time // when spent tokens began to refill
}

// refill returns the tokens earned since then.
func (b *bucket) refill(now time.Time) {
	if b.spent == 0 {
		return
	}
	back := int(min(int64(now.Sub(b.since)/b.every), int64(b.spent)))
	if back > 0 {
		b.spent -= back
		b.since = b.since.Add(time.Duration(back) * b.every)
	}
}

// take uses one token, if there is one.
func (b *bucket) take(now time.Time) bool {
	b.refill(now)
	if b.spent >= b.burst {
		return false
	}
	if b.spent == 0 {
		b.since = now
	}
	b.spent++
	return true
}

// giveBack undoes a take.
func (b *bucket) giveBack() { b.spent = max(b.spent-1, 0) }

// next is when a token is available: the zero time if one is now.
func (b *bucket) next(now time.Time) time.Time {
	b.refill(now)
	if b.spent < b.burst {
		return time.Time{}
	}
	return b.since.Add(b.every)
}

// budget limits allocation: burst bytes at once, then a rate per second. A
// larger allocation is never split; the next one waits until at most burst
// bytes are left to pay. The zero value of paid owes nothing.
type budget struct {
	burst, perSecond uint64
	paid             time.Time // when all allocations so far have been paid for
}

// spend counts bytes, even if the budget is exhausted.
func (b *budget) spend(now time.Time, bytes uint64) {
	if b.paid.Before(now) {
		b.paid = now
	}
	b.paid = b.paid.Add(b.worth(bytes))
}

// next is when an allocation is allowed again: the zero time if it is now.
func (b *budget) next(now time.Time) time.Time {
	if due := b.paid.Add(-b.worth(b.burst)); now.Before(due) {
		return due
	}
	return time.Time{}
}

// worth is the time to pay for that many bytes.
func (b *budget) worth(bytes uint64) time.Duration {
	return time.Duration(float64(bytes) / float64(b.perSecond) * float64(time.Second))
}
