// SPDX-License-Identifier: Apache-2.0

package chainrun

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/drayage/dray/internal/measure/verify"
	"github.com/drayage/dray/internal/node"
	"github.com/drayage/dray/internal/plan"
)

// compute measures the functions with compute, before any command runs.
func (r *Run) compute(ctx context.Context, live *node.Live) error {
	n := len(slices.DeleteFunc(slices.Clone(live.State.Plan.Functions), func(f plan.Function) bool { return f.Compute == nil }))
	if n == 0 {
		return nil
	}
	in := r.input(live)
	r.Say(fmt.Sprintf("Measuring the CPU time of %s, about %v", count(n, "function"), verify.EstimateCompute(in).Round(time.Second)))
	return r.phase("compute", func() error { return verify.Compute(ctx, in) })
}
