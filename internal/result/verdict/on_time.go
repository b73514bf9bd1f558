// SPDX-License-Identifier: Apache-2.0

package verdict

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/drayage/dray/internal/result/record"
	"github.com/drayage/dray/internal/result/stats"
)

// onTime judges the share of messages in slots that arrive within their receive
// windows. Lost ones do not.
type onTime struct {
	link  Link
	share float64
}

func onTimeRequired(l Link) Figure {
	share := l.Requires.OnTime
	return atLeast(float64(share), UnitRatio, percent(float64(share))+" within the receive windows")
}

func (o onTime) judge(level float64, trials []record.Trial) Finding {
	return judgeShare(level, trials, o.count, o.decide)
}

// count returns a trial's messages that were not on time, or why it is rejected. The
// sender's own lateness says nothing about the link, nor does a receiving program that was
// too slow to read its port.
func (o onTime) count(t record.Trial) (stats.Cluster, string) {
	c, why := loss{link: o.link}.count(t)
	switch {
	case why != "":
		return c, why
	case t.Windows == nil && t.Delivery.Received == 0:
		return c, "" // all lost
	case t.Passive:
		return c, "an application's own traffic is not compared with receive windows"
	case t.Windows == nil:
		return c, "its messages were not compared with receive windows: that takes one clock at both ends"
	}
	w := t.Windows.Sum()
	c.Events += float64(w.Early + w.Late)
	c.N -= float64(w.SentLate + min(t.Delivery.Lost, t.Delivery.ReceiverDrops))
	if c.N <= 0 {
		return c, "the sender sent every message too late"
	}
	return c, ""
}

// decide judges the messages that were not on time: p is their share.
func (o onTime) decide(f Finding, p stats.Proportion, used []record.Trial) Finding {
	allowed := 1 - o.share
	f.Measured = figure(1-p.Value, UnitRatio, fmt.Sprintf("%s (all but %.0f of %.0f)", percent(1-p.Value), p.Events, p.N))
	f.badness = p.Upper
	least := math.Ceil(3 / allowed * (1 - 1e-9)) // 1 − share is not exact
	switch {
	case p.Lower > allowed:
		f.Verdict, f.Bound = Missed, atMost(1-p.Lower, UnitRatio, percent(1-p.Lower))
		f.Reason = fmt.Sprintf("fewer than %s of the messages are on time", percent(o.share))
	case p.Upper <= allowed && p.N >= least:
		f.Verdict, f.Bound = Met, atLeast(1-p.Upper, UnitRatio, percent(1-p.Upper))
		f.Reason = fmt.Sprintf("at least %s of the messages are on time", percent(o.share))
	default:
		f.Bound = atLeast(1-p.Upper, UnitRatio, percent(1-p.Upper))
		f.Reason, f.Needs, f.more = o.undecided(p, least, used)
	}
	return f
}

func (o onTime) undecided(p stats.Proportion, least float64, used []record.Trial) (reason, needs string, more float64) {
	n, ok := p.SamplesToProve(1 - o.share)
	switch {
	case p.N < least:
		reason = fmt.Sprintf("%.0f messages cannot prove %s: that needs at least %.0f", p.N, percent(o.share), least)
	case ok:
		reason = fmt.Sprintf("%s is too close to %s to decide with %.0f messages", percent(1-p.Value), percent(o.share), p.N)
	default:
		return fmt.Sprintf("fewer than %s were on time, but trials differ too much to rule out chance", percent(o.share)),
			fmt.Sprintf("more than %d trials", len(used)), unclear
	}
	need := math.Max(n, least)
	return reason, amount(need, p.N, used, "message"), need / p.N
}

// percent prints a share near 1 with the digits that matter: three of what is missing.
func percent(share float64) string {
	missing := 100 * (1 - share)
	digits := 1
	if missing > 0 && missing < 1 {
		digits = min(12, 3-int(math.Ceil(math.Log10(missing))))
	}
	text := strconv.FormatFloat(100*share, 'f', digits, 64)
	return strings.TrimRight(strings.TrimRight(text, "0"), ".") + "%"
}
