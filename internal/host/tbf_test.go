// SPDX-License-Identifier: Apache-2.0

package host

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/drayage/dray/test/testenv"
)

// TestTokenBucket sets by netlink what tc reads, also again and at another rate.
func TestTokenBucket(t *testing.T) {
	testenv.Program(t, "tc")
	if err := ProbeTokenBucket(); err != nil {
		t.Fatal(err)
	}
	for _, q := range []Qdisc{
		{Kind: "tbf", Rate: 10e6, Burst: 20000, Latency: 30 * time.Millisecond},
		{Kind: "tbf", Rate: 20e6, Burst: 80 * 1024, Latency: 20 * time.Millisecond},
		{Kind: "tbf", Rate: 100e3, Burst: 80 * 1024},
		{Kind: "tbf", Rate: 3e9},
		{Kind: "tbf", Rate: 40e9, Burst: 20e6, Latency: 20 * time.Millisecond},
	} {
		inVeth(t, func(n Netns) {
			for _, rate := range []uint64{q.Rate, q.Rate, q.Rate / 2} {
				q.Rate = rate
				if err := n.SetTokenBucket("p0", q); err != nil {
					t.Fatal(err)
				}
				want, err := q.complete(1500)
				if err == nil {
					err = n.checkQdisc("p0", want) // as tc reads it
				}
				if err != nil {
					t.Errorf("%+v: %v", q, err)
				}
			}
		})
	}
}

// TestTokenBucketRefuses what it cannot set, and leaves the qdiscs of others alone.
func TestTokenBucketRefuses(t *testing.T) {
	testenv.Program(t, "tc")
	inVeth(t, func(n Netns) {
		var lacks *Unsupported
		for _, q := range []Qdisc{{Kind: "htb", Rate: 1e6}, {Kind: "tbf", Rate: 1e6, Child: &Qdisc{Kind: "sfq"}}} {
			if err := n.SetTokenBucket("p0", q); !errors.As(err, &lacks) {
				t.Errorf("%+v: %v", q, err)
			}
		}
		if err := n.SetTokenBucket("p0", Qdisc{Kind: "tbf", Rate: 800, Burst: 80 * 1024}); err == nil || !strings.Contains(err.Error(), "takes 819 s at 800 bit/s") {
			t.Errorf("a burst that is too long: %v", err)
		}
		if err := n.tc("qdisc", "add", "dev", "p0", "root", "handle", "1:", "pfifo"); err != nil {
			t.Fatal(err)
		}
		if err := n.SetTokenBucket("p0", Qdisc{Kind: "tbf", Rate: 1e6}); err == nil {
			t.Error("it replaced another qdisc")
		}
		if state, err := n.ReadQdisc("p0"); err != nil || state.Kind != "pfifo" {
			t.Errorf("%v: %+v", err, state)
		}
	})
}
