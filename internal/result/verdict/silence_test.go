// SPDX-License-Identifier: Apache-2.0

package verdict

import (
	"testing"

	"github.com/drayage/dray/internal/result/record"
	"github.com/drayage/dray/internal/spec/chain"
	"github.com/drayage/dray/internal/spec/units"
)

// dead is the instruments' output for a link whose peer has stopped: unanswered pings,
// and errors.
func dead(q record.Quantity) []record.Trial {
	failed := both(3, q, func(tr *record.Trial) { tr.Error = "unable to connect: no route to host" })
	pings := both(1, record.QPathMTU, func(tr *record.Trial) { tr.PathMTU = &record.PathMTU{Wanted: 1500} })
	return append(failed, pings...)
}

func TestStoppedPeerMissesEverything(t *testing.T) {
	ratio := units.Ratio(1e-3)
	for q, r := range map[record.Quantity]chain.Requires{
		record.QThroughput: needsMin,
		record.QStream:     {LossRatio: &ratio},
		record.QPacketRate: needsRate,
		record.QPathMTU:    needsMTU,
	} {
		judgeOne(t, link(r), dead(q), Missed, "", "")
	}
	judgeOne(t, link(needsLatency), dead(record.QStream), Missed, "never arrived", "")
	judgeOne(t, link(needsPDV), dead(record.QStream), Missed, "never arrived", "")
	idle := link(needsLatency)
	idle.Load = 0
	judgeOne(t, idle, dead(record.QProbe), Missed, "never arrived", "")
	judgeOne(t, link(needsMax), dead(record.QThroughput), NotMeasurable, "no packets passed", "")
}

// If one packet came through, errors stay errors.
func TestErrorsOnALivingLinkAreNoEvidence(t *testing.T) {
	trials := dead(record.QThroughput)
	trials[6].PathMTU.Largest = 28
	judgeOne(t, link(needsMin), trials, NotMeasurable, "no route to host", "3 trials more")
}

// The link did deliver what the receiver's program was too slow to read.
func TestReceiverDropsAreNotTheLinks(t *testing.T) {
	trials := both(3, record.QStream, func(tr *record.Trial) {
		delivery(20_000, 40)(tr)
		tr.Delivery.ReceiverDrops = 40
	})
	judgeOne(t, link(needsLoss(1e-4)), trials, Met, "", "")
	fast := both(3, record.QPacketRate, func(tr *record.Trial) {
		pps(110_000, 70_000)(tr)
		tr.Delivery.ReceiverDrops = 39_000
	})
	judgeOne(t, link(needsRate), fast, Met, "", "")
}
