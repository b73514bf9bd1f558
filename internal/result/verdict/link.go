// SPDX-License-Identifier: Apache-2.0

package verdict

import (
	"cmp"

	"github.com/drayage/dray/internal/plan"
	"github.com/drayage/dray/internal/result/record"
	"github.com/drayage/dray/internal/spec/chain"
	"github.com/drayage/dray/internal/spec/units"
)

// Link is what the judge must know of a link.
type Link struct {
	Name     string
	Requires chain.Requires
	// Traffic is what bitrates are of.
	Traffic chain.Traffic
	// Load is the traffic under which latency and loss are to be measured; 0: idle.
	Load units.Bitrate
	// Native says that one of its ports is no network interface.
	Native bool
	// Directions are those that the requirements hold for.
	Directions []Direction
	// Uplinks are the ends that are host interfaces. What lies beyond them has
	// no instrument, so that no requirement can be proven as far as there.
	Uplinks []string

	live bool // the trials are of the functions' own traffic
}

// Direction is a way between two ports, each "function.port" as in records.
type Direction struct {
	From, To string
}

func (d Direction) String() string { return d.From + " → " + d.To }

// FromPlan is the link as planned: its requirements hold in every direction
// between any two of its ports.
func FromPlan(l plan.Link) Link {
	out := Link{Name: l.Name, Requires: l.Requires, Traffic: cmp.Or(l.Traffic, chain.TrafficUDP), Load: l.Load}
	for _, from := range l.Ends {
		out.Native = out.Native || from.Face == chain.FaceNative || from.Face == chain.FaceDPDK
		if from.Uplink != "" {
			out.Uplinks = append(out.Uplinks, from.String())
			continue
		}
		for _, to := range l.Ends {
			if to.Uplink == "" && to.String() != from.String() {
				out.Directions = append(out.Directions, Direction{from.String(), to.String()})
			}
		}
	}
	return out
}

// JudgeLive judges records of the functions' own traffic: latency, its variation
// and loss. Bitrate, packet rate and MTU say what a link must be able to carry,
// which traffic at the functions' own rate cannot show.
func JudgeLive(l plan.Link, trials []record.Trial) []Verdict {
	own := FromPlan(l)
	own.live, own.Load = true, 0
	own.Requires = chain.Requires{
		Latency: l.Requires.Latency, Percentile: l.Requires.Percentile, PDV: l.Requires.PDV, LossRatio: l.Requires.LossRatio,
	}
	return Judge(own, trials)
}
