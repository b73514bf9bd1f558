// SPDX-License-Identifier: Apache-2.0

package search

import (
	"fmt"
	"time"
)

// GoalResult is what a search found for one goal: a Goal Result of RFC 9971.
type GoalResult struct {
	Goal Goal `json:"goal"`
	// Regular says that both bounds exist and are as close as Goal.Width asks.
	// If it is false Reason says why, and the other fields hold what is known.
	Regular bool   `json:"regular"`
	Reason  string `json:"reason,omitempty"`
	Lower   uint64 `json:"lower"` // Relevant Lower Bound, packets/s; 0: none
	Upper   uint64 `json:"upper"` // Relevant Upper Bound, packets/s; 0: none
	// Throughput is the Conditional Throughput at Lower, packets/s.
	Throughput float64 `json:"throughput"`
	// ByInstrument is the share of the loss at Upper that the measuring programs
	// had: packets not sent in time, and packets that arrived and were not taken.
	// Above a half, the figure is theirs, or that of a port that took no more.
	ByInstrument float64 `json:"by_instrument"`
	Lossless     bool    `json:"lossless"` // no trial at Lower lost a packet
}

// String prints the throughput with what it means.
func (r GoalResult) String() string {
	switch {
	case r.Lower == 0:
		return fmt.Sprintf("no result (%s; %s)", r.Reason, r.Goal)
	case !r.Regular:
		return fmt.Sprintf("at least %.4g packets/s (%s; %s)", r.Throughput, r.Reason, r.Goal)
	}
	return fmt.Sprintf("%.4g packets/s (%s)", r.Throughput, r.Goal)
}

// Result is the Controller Output of a search.
type Result struct {
	Goals    []GoalResult  `json:"goals"` // in the order in which they were given
	Trials   []Trial       `json:"trials"`
	Rejected int           `json:"rejected"` // of Trials
	Duration time.Duration `json:"duration"` // of all trials together, ns
}
