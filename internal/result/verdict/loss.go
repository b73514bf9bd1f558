// SPDX-License-Identifier: Apache-2.0

package verdict

import (
	"fmt"
	"math"

	"github.com/drayage/dray/internal/result/record"
	"github.com/drayage/dray/internal/result/stats"
)

// loss judges the share of datagrams that never arrive at the declared load.
type loss struct {
	link  Link
	ratio float64
}

func (l loss) judge(level float64, trials []record.Trial) Finding {
	return judgeShare(level, trials, l.count, l.decide)
}

// count returns a trial's losses, or why it is rejected (RFC 9971 trials that cannot be
// trusted: a load that was not offered, a negative loss). The link did not lose packets
// that reached the receiver's socket, but not its program.
func (l loss) count(t record.Trial) (stats.Cluster, string) {
	d := t.Delivery
	switch {
	case d == nil || d.Sent == 0:
		return stats.Cluster{}, noResult(t)
	case l.link.passive && !l.link.loadedBy(d):
		return stats.Cluster{}, l.link.lighter(d)
	case l.link.Load > 0 && !l.link.live && !within5(d.OfferedBits, uint64(l.link.Load)):
		return stats.Cluster{}, fmt.Sprintf("it offered %s, but the link's load is %s", FormatBitrate(float64(d.OfferedBits)), l.link.Load)
	case d.Received > d.Sent || d.Lost > d.Sent || d.ReceiverDrops > d.Lost:
		return stats.Cluster{}, fmt.Sprintf("negative loss: %d sent, %d received", d.Sent, d.Received)
	case reached(d):
		return stats.Cluster{Events: float64(d.Lost - min(d.Lost, d.ReceiverDrops)), N: float64(d.Sent)}, ""
	case d.SentBits < d.OfferedBits && shapedBelow(t, float64(d.OfferedBits)):
		// The link's own shaper held the sender back: packets not sent in time are the
		// link's loss.
		offered := float64(d.Sent) * float64(d.OfferedBits) / math.Max(1, float64(d.SentBits))
		return stats.Cluster{Events: offered - float64(d.Received+d.ReceiverDrops), N: offered}, ""
	}
	return stats.Cluster{}, missedRate(d)
}

func (l loss) decide(f Finding, p stats.Proportion, used []record.Trial) Finding {
	f.Measured = figure(p.Value, UnitRatio, fmt.Sprintf("%s (%.0f of %.0f)", share(p.Value), p.Events, p.N))
	f.badness = p.Upper
	least := math.Ceil(3/l.ratio - 1e-6)
	switch {
	case p.Lower > l.ratio:
		f.Verdict, f.Bound = Missed, atLeast(p.Lower, UnitRatio, share(p.Lower))
		f.Reason = fmt.Sprintf("more than %s of the packets are lost", share(l.ratio))
	case p.Upper <= l.ratio && p.N >= least:
		f.Verdict, f.Bound = Met, atMost(p.Upper, UnitRatio, share(p.Upper))
		f.Reason = fmt.Sprintf("no more than %s of the packets are lost", share(l.ratio))
	default:
		f.Bound = atMost(p.Upper, UnitRatio, share(p.Upper))
		f.Reason, f.Needs, f.more = l.undecided(p, least, used)
	}
	return f
}

func (l loss) undecided(p stats.Proportion, least float64, used []record.Trial) (reason, needs string, more float64) {
	n, ok := p.SamplesToProve(l.ratio)
	switch {
	case p.N < least:
		reason = fmt.Sprintf("%.0f packets cannot prove %s: that needs at least %.0f", p.N, share(l.ratio), least)
	case ok:
		reason = fmt.Sprintf("%s is too close to %s to decide with %.0f packets", share(p.Value), share(l.ratio), p.N)
	default:
		return fmt.Sprintf("more than %s were lost, but trials differ too much to rule out chance", share(l.ratio)),
			fmt.Sprintf("more than %d trials", len(used)), unclear
	}
	need := math.Max(n, least)
	return reason, amount(need, p.N, used, "packet"), need / p.N
}
