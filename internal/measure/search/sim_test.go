// SPDX-License-Identifier: Apache-2.0

package search

import (
	"context"
	"math"
	"math/rand/v2"
	"time"
)

// device is a simulated device under test, and its sender.
type device struct {
	rng      *rand.Rand
	capacity float64 // packets/s
	// noise is the standard deviation of the logarithm of a trial's capacity.
	noise float64
	// queue is how many packets wait at most before any is dropped.
	queue float64
	// stalls per second, each of stall seconds, in which nothing is served.
	stalls, stall float64
	// holds makes the port accept only what the device serves: the excess is never
	// sent, and nothing is dropped.
	holds bool
	// sender is the load beyond which the sender falls to senderShare of it; 0: none.
	sender, senderShare float64

	trials int
}

func newDevice(capacity float64, seed uint64) *device {
	return &device{capacity: capacity, rng: rand.New(rand.NewPCG(seed, 0x5eed))}
}

func (d *device) Measure(_ context.Context, load uint64, length time.Duration) (Outcome, error) {
	d.trials++
	seconds := length.Seconds()
	due := math.Floor(float64(load) * seconds)
	sent := due
	if d.sender > 0 && float64(load) > d.sender {
		sent = math.Floor(d.sender * d.senderShare * seconds)
	}
	served := d.capacity * math.Exp(d.noise*d.rng.NormFloat64()) * seconds
	lost := math.Max(0, sent-served-d.queue)
	for range d.poisson(d.stalls * seconds) {
		lost += math.Max(0, float64(load)*d.stall-d.queue)
	}
	lost = math.Ceil(math.Min(lost, sent))
	o := Outcome{Sent: uint64(sent), Unsent: uint64(due - sent), Received: uint64(sent - lost)}
	if d.holds {
		o.Sent, o.Unsent = o.Received, uint64(due)-o.Received
	}
	return o, nil
}

// poisson draws a number of events with that mean.
func (d *device) poisson(mean float64) int {
	n := 0
	for t := d.rng.ExpFloat64(); t < mean; t += d.rng.ExpFloat64() {
		n++
	}
	return n
}
