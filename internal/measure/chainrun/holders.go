// SPDX-License-Identifier: Apache-2.0

package chainrun

import (
	"context"
	"fmt"
	"strings"

	"github.com/drayage/dray/internal/measure/live"
	"github.com/drayage/dray/internal/node"
)

// lookForHolders finds the links that applications hold. If the chain's broker does not
// answer, there are none: instruments then fail at its ports, and say why.
func (r *Run) lookForHolders(ctx context.Context, up *node.Live) {
	r.Options.Held = nil
	if b, err := up.Broker(); err != nil || b == nil {
		return
	}
	c, err := live.Ask(ctx, brokered(up))
	if err != nil {
		return
	}
	if r.Options.Held = c.Held(); len(r.Options.Held) > 0 {
		r.Say(fmt.Sprintf("Applications hold %s: their own traffic is observed, and no load is offered", strings.Join(r.Options.Held, ", ")))
	}
}

// reports reads what the ports of a chain report.
func (r *Run) reports(up *node.Live) live.Source {
	return func(ctx context.Context) ([]live.Chain, error) {
		c, err := live.Ask(ctx, brokered(up))
		return []live.Chain{c}, err
	}
}

func brokered(up *node.Live) node.Brokered {
	return node.Brokered{Chain: up.Chain.Name, Dir: up.BrokerDir(), Links: up.State.Plan.Links}
}
