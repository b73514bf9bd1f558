// SPDX-License-Identifier: Apache-2.0

package search

import (
	"context"
	"testing"
	"time"
)

func TestBinarySearch(t *testing.T) {
	b := Binary{Min: 1000, Max: 10_000_000, Trial: time.Minute, Resolution: 0.001}
	r, err := b.Throughput(context.Background(), newDevice(1_234_567, 1))
	if err != nil {
		t.Fatal(err)
	}
	g := r.Goals[0]
	if !g.Regular || g.Lower > 1_234_567 || g.Upper <= 1_234_567 || float64(g.Upper-g.Lower) > 0.001*float64(g.Upper) {
		t.Errorf("%+v: want 1234567 enclosed", g)
	}
	if g.Throughput != float64(g.Lower) || !g.Lossless {
		t.Errorf("%+v: the throughput of RFC 2544 is a load without loss", g)
	}
	// One trial a load: the highest, the lowest, and each halving.
	if len(r.Trials) < 14 || len(r.Trials) > 17 {
		t.Errorf("%d trials, want about 15", len(r.Trials))
	}
	for i, tr := range r.Trials[:2] {
		if want := []uint64{10_000_000, 1000}[i]; tr.Load != want || tr.Duration != time.Minute {
			t.Errorf("trial %d: %d packets/s for %v, want %d for 1m", i, tr.Load, tr.Duration, want)
		}
	}
}

func TestBinarySearchEdges(t *testing.T) {
	b := Binary{Min: 1000, Max: 1_000_000, Trial: time.Second, Resolution: 0.01}
	for capacity, reason := range map[float64]string{1e9: ReasonMax, 10: ReasonMin} {
		r, err := b.Throughput(context.Background(), newDevice(capacity, 1))
		if err != nil || r.Goals[0].Regular || r.Goals[0].Reason != reason {
			t.Errorf("capacity %g: %+v, %v; want %q", capacity, r.Goals[0], err, reason)
		}
	}
	b.Verify = -1
	if _, err := b.Throughput(context.Background(), newDevice(1e5, 1)); err == nil {
		t.Error("a negative number of trials was accepted")
	}
}

// Loss verification forgives a loss that a second trial does not show.
func TestBinarySearchVerifiesLoss(t *testing.T) {
	found := func(verify int) float64 {
		sum := 0.0
		for seed := range uint64(50) {
			d := newDevice(1e6, seed)
			d.stalls, d.stall = 0.3, 0.001
			r, err := Binary{Min: 1000, Max: 4_000_000, Trial: time.Second, Resolution: 0.005, Verify: verify}.Throughput(context.Background(), d)
			if err != nil {
				t.Fatal(err)
			}
			sum += r.Goals[0].Throughput / 50
		}
		return sum
	}
	once, thrice := found(0), found(3)
	if thrice < 0.9e6 || once > 0.8*thrice {
		t.Errorf("mean throughput %.0f with one trial, %.0f with three: want the capacity of 1 Mpps only with verification", once, thrice)
	}
}
