// SPDX-License-Identifier: Apache-2.0

package node

import (
	"fmt"

	"github.com/drayage/dray/internal/spec/chain"
	"github.com/drayage/dray/internal/spec/cpulist"
)

// Grant is what a function with compute has of its CPUs.
type Grant struct {
	chain.Compute
	CPUs []int `json:"cpus"`
	// Weight is that of its control group as the kernel states it, and Largest the largest
	// that there is. Functions on one CPU get time in proportion to their weights.
	Weight  int    `json:"weight"`
	Largest int    `json:"largest"`
	Error   string `json:"error,omitempty"` // why the weight is unknown
}

// String is for users: "60% of CPU 1 within 10ms, weight 157286 of 262144".
func (g Grant) String() string {
	text := fmt.Sprintf("%s of CPU %s within %v", g.Percent(), cpulist.Format(g.CPUs), g.Deadline)
	if g.Error != "" {
		return text + ", but " + g.Error
	}
	return fmt.Sprintf("%s, weight %d of %d", text, g.Weight, g.Largest)
}

// Grants are what the functions with compute have, by function.
func (l *Live) Grants() map[string]Grant {
	grants := map[string]Grant{}
	for _, f := range l.State.Plan.Functions {
		if f.Compute == nil {
			continue
		}
		g := Grant{Compute: *f.Compute, CPUs: f.CPUs}
		var err error
		if g.Weight, g.Largest, err = l.FunctionCgroup(f.Name).CPUWeight(); err != nil {
			g.Error = err.Error()
		}
		grants[f.Name] = g
	}
	return grants
}
