// SPDX-License-Identifier: Apache-2.0

package verdict

import (
	"fmt"
	"math"

	"github.com/drayage/dray/internal/result/record"
	"github.com/drayage/dray/internal/spec/chain"
)

// A link whose end an application holds has no room for an instrument. What is known of
// it are the figures of the application's own traffic: see record.Trial.Passive.

// passively begins the method of a link that was only observed.
func passively(l Link) string {
	if l.passive {
		return "passive, figures of the application's own traffic: "
	}
	return ""
}

// stamped is how delays are known.
func stamped(l Link) string {
	if l.live && !l.probed {
		return passively(l) + "one way, stamped in a sample of the packets"
	}
	return "one way, stamped in every packet"
}

// counted is how losses are known.
func counted(l Link) string {
	if l.live {
		return passively(l) + "counters of both ports"
	}
	return "sequence numbers read at the receiver"
}

// loadedBy reports whether an application's own traffic was at least the link's load.
func (l Link) loadedBy(d *record.Delivery) bool { return payload(d) >= 0.95*float64(l.Load) }

func (l Link) lighter(d *record.Delivery) string {
	return fmt.Sprintf("the application's traffic was %s, but the link's load is %s", FormatBitrate(payload(d)), l.Load)
}

// sampledLoss is how many of the lost packets would have been stamped: one that was lost
// counts as late, and must weigh no more than one that arrived.
func sampledLoss(t record.Trial) uint64 {
	d, stamped := t.Delivery, uint64(t.OneWay.Latency.Total())
	if d.Received == 0 || stamped >= d.Received {
		return d.Lost
	}
	return uint64(math.Ceil(float64(d.Lost) * float64(stamped) / float64(d.Received)))
}

// idle reports whether nothing was sent in any trial.
func idle(trials []record.Trial) bool {
	for _, t := range trials {
		if t.Delivery != nil || t.Error != "" {
			return false
		}
	}
	return true
}

func nothingSent(d Direction) Finding {
	return notMeasurable(d.String(), nothingSentText, fmt.Sprintf("traffic of the application from %s to %s", d.From, d.To))
}

const nothingSentText = "the application sent nothing"

// unseenRules leave undecided what traffic at the application's own rate cannot show.
func unseenRules(l Link) []rule {
	q := l.Requires
	var rs []rule
	if q.MinBitrate > 0 && l.Traffic == chain.TrafficTCP {
		rs = append(rs, unseen(l, "min_bitrate", atLeast(float64(q.MinBitrate), UnitBitrate, q.MinBitrate.String()), "its ports do not tell TCP's payload from other bytes"))
	}
	if q.MaxBitrate > 0 {
		rs = append(rs, unseen(l, "max_bitrate", atMost(float64(q.MaxBitrate), UnitBitrate, q.MaxBitrate.String()), "it may have sent less than the link carries"))
	}
	if q.MTU > 0 {
		rs = append(rs, unseen(l, "mtu", atLeast(float64(q.MTU), UnitBytes, fmt.Sprintf("%d B", q.MTU)), "its ports do not report the sizes of its packets"))
	}
	return rs
}

func unseen(l Link, requirement string, required Figure, why string) rule {
	return rule{
		requirement: requirement, required: required, method: passively(l) + "no figure", quantity: record.QStream,
		judge: func(_ float64, trials []record.Trial) Finding {
			f := newFinding(trials, nil)
			f.Reason = "the application's own traffic does not show it: " + why
			f.Needs = "instruments at the link's ports: stop the application and measure again"
			return f
		},
	}
}
