// SPDX-License-Identifier: Apache-2.0

package microbench

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/drayage/dray/internal/host"
)

// settle is the time to finish a burst after the pause.
const settle = 50 * time.Millisecond

// way connects two applications: each side's devices, as EAL arguments.
type way struct {
	name             string
	sender, receiver string // receiver is empty: the sender is alone
	application      string // further arguments of the sending testpmd
	waits            bool   // the receiver starts only when the sender does
}

// links is how many Drayage links the way takes.
func (w way) links() int {
	if strings.Contains(w.sender, "net_dray") {
		return 1
	}
	return 0
}

const testpmdPrompt = "testpmd> "

func (p *place) testpmd(t *pair, side int, devices, mode, more string) *process {
	// By lines: otherwise its answers would stay in a buffer.
	argv := slices.Concat([]string{"stdbuf", "-oL", "dpdk-testpmd"}, p.eal(t, side, devices),
		[]string{"--", "--interactive", "--auto-start", "--forward-mode=" + mode, "--total-num-mbufs=4096", "--txpkts=64"}, strings.Fields(more))
	return t.start(argv, anyCPU, mode)
}

// startTestpmd starts testpmd on both sides: txonly to rxonly.
func (p *place) startTestpmd(w way) *pair {
	t := p.newPair(w.links())
	t.size = 64
	const noReceiver, noSender = "the receiving testpmd did not start", "the sending testpmd did not start"
	if w.receiver != "" {
		t.receiver = p.testpmd(t, receiveSide, w.receiver, "rxonly", "")
		if !w.waits && !t.started(p.ctx, t.receiver, testpmdPrompt, noReceiver) {
			return t
		}
	}
	t.sender = p.testpmd(t, sendSide, w.sender, "txonly", w.application)
	if t.started(p.ctx, t.sender, testpmdPrompt, noSender) && w.waits {
		t.started(p.ctx, t.receiver, testpmdPrompt, noReceiver)
	}
	t.pause()
	return t
}

// testpmdRate is the packet rate, per second, that the receiver counts, or the sender if
// there is no receiver; 0: the pair has failed.
func (p *place) testpmdRate(t *pair, size int) float64 {
	if t.why != "" {
		return 0
	}
	counts, label := t.receiver, "Rx-pps:"
	if counts == nil {
		counts, label = t.sender, "Tx-pps:"
	}
	t.resume()
	if t.size != size {
		from := t.sender.logged()
		if !t.sender.write(fmt.Sprintf("stop\nset txpkts %d\nstart\n", size)) || !t.sender.says(p.ctx, from, "txonly packet forwarding", answerWithin) {
			return t.fail("the sending testpmd did not accept another size")
		}
		t.size = size
	}
	_ = host.Sleep(p.ctx, settle) // an interrupted bench has no use for the sample
	// It prints the rate since the previous query, by its own clock.
	const show = "show port stats 0\n"
	const silent = "testpmd has ended, or does not answer"
	if _, ok := counts.ask(p.ctx, show, label); !ok {
		return t.fail(silent)
	}
	_ = host.Sleep(p.ctx, p.Window)
	rate, ok := counts.ask(p.ctx, show, label)
	if !ok {
		return t.fail(silent)
	}
	t.pause()
	if rate <= 0 {
		return t.fail("no packet arrived")
	}
	return rate
}

// startTrips starts one frame back and forth between two dray-pmd-trips.
func (p *place) startTrips(w way) *pair {
	t := p.newPair(w.links())
	trips := func(side int, devices string, role ...string) *process {
		argv := slices.Concat([]string{p.Trips}, p.eal(t, side, devices), []string{"--"}, role)
		return t.start(argv, anyCPU, role[0])
	}
	t.receiver = trips(receiveSide, w.receiver, "reflect")
	if !w.waits && !t.started(p.ctx, t.receiver, "ready", "the reflecting application did not start") {
		return t
	}
	t.sender = trips(sendSide, w.sender, "ping", "64")
	t.started(p.ctx, t.sender, tripLabel, "no frame came back")
	t.pause()
	return t
}

// tripLabel precedes the median in the repeated output of dray-pmd-trips.
const tripLabel = `"values": [`

// medianTrip is the median round trip in ns; 0: the pair has failed.
func (p *place) medianTrip(t *pair) float64 {
	if t.why != "" {
		return 0
	}
	t.resume()
	var p50 float64
	// The first median spans the pause, and the second began before it: use the third.
	for range 3 {
		var ok bool
		if p50, ok = t.sender.number(p.ctx, t.sender.logged(), tripLabel, answerWithin); !ok {
			return t.fail("frames no longer come back")
		}
	}
	t.pause()
	return p50
}
