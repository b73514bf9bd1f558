// SPDX-License-Identifier: Apache-2.0

package search

import (
	"time"
)

// GoalResult is a search's result for one goal: a Goal Result of RFC 9971.
type GoalResult struct {
	Goal Goal `json:"goal"`
	// Regular means that both bounds exist and are within Goal.Width. If it is false
	// Reason explains why, and the other fields hold what is known.
	Regular bool   `json:"regular"`
	Reason  string `json:"reason,omitempty"`
	Lower   uint64 `json:"lower"` // Relevant Lower Bound, packets/s; 0: none
	Upper   uint64 `json:"upper"` // Relevant Upper Bound, packets/s; 0: none
	// Throughput is the Conditional Throughput at Lower, packets/s.
	Throughput float64 `json:"throughput"`
	// ByInstrument is the measuring programs' share of the loss at Upper: packets not
	// sent in time, and packets that arrived but were not received. Above a half, the
	// figure is the programs' limit, or that of a port that accepted no more.
	ByInstrument float64 `json:"by_instrument"`
	Lossless     bool    `json:"lossless"` // no trial at Lower lost a packet
}

// Result is the Controller Output of a search.
type Result struct {
	Goals    []GoalResult  `json:"goals"` // in the given order
	Trials   []Trial       `json:"trials"`
	Rejected int           `json:"rejected"` // of Trials
	Duration time.Duration `json:"duration"` // of all trials together, ns
}
