// SPDX-License-Identifier: Apache-2.0

package broker

import "time"

// bucket limits how often something happens: burst times at once, then every
// so often. The zero bucket is full.
type bucket struct {
	burst int
	every time.Duration // that one more is allowed
	spent int
	since time.Time // when the spent ones began to come back
}

// refill gives back what the time since has earned.
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

// take uses one, if there is one.
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

// next is when there is one again: the zero time if there is one now.
func (b *bucket) next(now time.Time) time.Time {
	b.refill(now)
	if b.spent < b.burst {
		return time.Time{}
	}
	return b.since.Add(b.every)
}

// budget limits how many bytes are made: burst bytes at once, then so many a
// second. What is larger than the burst is made whole; nothing else is made until
// no more than the burst is left to pay. The zero value of paid owes nothing.
type budget struct {
	burst, perSecond uint64
	paid             time.Time // when all that was made has been paid for
}

// spend counts bytes, whether or not there is room for them.
func (b *budget) spend(now time.Time, bytes uint64) {
	if b.paid.Before(now) {
		b.paid = now
	}
	b.paid = b.paid.Add(b.worth(bytes))
}

// next is when anything may be made again: the zero time if it may be now.
func (b *budget) next(now time.Time) time.Time {
	if due := b.paid.Add(-b.worth(b.burst)); now.Before(due) {
		return due
	}
	return time.Time{}
}

// worth is how long it takes to pay for so many bytes.
func (b *budget) worth(bytes uint64) time.Duration {
	return time.Duration(float64(bytes) / float64(b.perSecond) * float64(time.Second))
}
