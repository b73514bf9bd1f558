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
	c, err := live.Of(up)(ctx)
	if err != nil {
		return
	}
	if r.Options.Held = c[0].Held(); len(r.Options.Held) > 0 {
		r.Say(fmt.Sprintf("Applications hold %s: their own traffic is observed, and no load is offered", strings.Join(r.Options.Held, ", ")))
	}
}
