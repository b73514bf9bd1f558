// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"cmp"
	"fmt"

	"github.com/drayage/dray/internal/link/transport"
	"github.com/drayage/dray/internal/plan"
	"github.com/drayage/dray/internal/spec/chain"
)

// UserQdiscs are the qdiscs of a link whose ports queue in user space, by end. They are
// as ordered: a port says what it has made of them only while a program has it open.
func UserQdiscs(l plan.Link) map[string]string {
	qdiscs := map[string]string{}
	for _, e := range l.Ends {
		if e.Backend != plan.BackendShm {
			continue
		}
		own := e.Shape
		if l.Shape.AtSwitch() {
			qdiscs[l.Name+": "+e.String()+transport.AtSwitch] = userText(l.Shape)
		} else {
			own = cmp.Or(own, l.Shape)
		}
		if own != nil {
			qdiscs[e.String()] = userText(own)
		}
	}
	return qdiscs
}

// userText is a qdisc in one line; the verdicts read the rate.
func userText(q *chain.Qdisc) string {
	s := q.Kind
	if rate := max(q.Rate, q.Ceil); rate > 0 {
		s += fmt.Sprintf(" rate %v burst %v", rate, q.Burst)
	}
	if n := len(q.Classes); n > 0 {
		return s + fmt.Sprintf(" with %d classes, as ordered in user space", n)
	}
	queue := q.Queues()[0]
	if queue.Kind != q.Kind {
		s += " over " + queue.Kind
	}
	return s + fmt.Sprintf(" limit %d, as ordered in user space", queue.Limit)
}
