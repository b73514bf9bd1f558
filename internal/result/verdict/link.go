// SPDX-License-Identifier: Apache-2.0

package verdict

import (
	"cmp"
	"slices"

	"github.com/drayage/dray/internal/plan"
	"github.com/drayage/dray/internal/result/record"
	"github.com/drayage/dray/internal/spec/chain"
	"github.com/drayage/dray/internal/spec/units"
)

// Link is the judge's view of a link.
type Link struct {
	Name     string
	Requires chain.Requires
	// Traffic is the protocol of bitrates.
	Traffic chain.Traffic
	// Load is the required traffic during latency and loss measurements; 0: idle.
	Load units.Bitrate
	// Path says that it is a path over several links, or functions.
	Path bool
	// Slots is what that traffic is; nil: datagrams.
	Slots chain.SlotLoad
	// Native says that one of its ports is not a network interface.
	Native bool
	// Directions are the directions of the requirements.
	Directions []Direction
	// Uplinks are the ends that are host interfaces. No instrument exists beyond them,
	// so no requirement can be proven that far.
	Uplinks []string

	live    bool // the trials are of the functions' own traffic
	probed  bool // likewise, but delays are those of probes
	passive bool // likewise, in a run: what this traffic cannot show stays undecided
}

// Direction is from one port to another, each "function.port" as in records.
type Direction struct {
	From, To string
}

func (d Direction) String() string { return d.From + " → " + d.To }

// FromPlan is the planned link: its requirements hold in every direction between any
// two of its ports; those of a path may hold only from its first end to its second.
func FromPlan(l plan.Link) Link {
	out := Link{Name: l.Name, Requires: l.Requires, Traffic: cmp.Or(l.Traffic, chain.TrafficUDP), Load: l.Load, Slots: l.SlotLoad(), Path: l.Course != nil}
	for _, from := range l.Ends {
		out.Native = out.Native || from.Face == chain.FaceNative || from.Face == chain.FaceDPDK
		if from.Uplink != "" {
			out.Uplinks = append(out.Uplinks, from.String())
			continue
		}
		for _, to := range l.Ends {
			back := l.Course != nil && l.Course.Forward && from.String() != l.Ends[0].String()
			if to.Uplink == "" && to.String() != from.String() && !back {
				out.Directions = append(out.Directions, Direction{from.String(), to.String()})
			}
		}
	}
	return out
}

// OfRun is the planned link as the trials of a run measured it: passively if an
// application held an end of it.
func OfRun(l plan.Link, trials []record.Trial) Link {
	own := FromPlan(l)
	own.passive = slices.ContainsFunc(trials, func(t record.Trial) bool { return t.Passive && t.Link == l.Name })
	own.live = own.passive
	return own
}

// JudgeLive judges records of the functions' own traffic: latency, its variation, loss,
// and the least bitrate and packet rate. The MTU and the highest bitrate are properties
// of a link that traffic at the functions' own rate cannot show.
func JudgeLive(l plan.Link, trials []record.Trial) []Verdict { return Judge(liveLink(l), trials) }

// liveLink is a link with the requirements that live traffic can show.
func liveLink(l plan.Link) Link {
	own := FromPlan(l)
	own.live, own.Load, own.Slots = true, 0, nil
	own.Requires = chain.Requires{
		Latency: l.Requires.Latency, Percentile: l.Requires.Percentile, PDV: l.Requires.PDV, LossRatio: l.Requires.LossRatio,
		MinBitrate: l.Requires.MinBitrate, PacketRate: l.Requires.PacketRate,
	}
	return own
}

// IsDelay reports whether a requirement is of delays.
func IsDelay(requirement string) bool {
	return requirement == "latency" || requirement == "packet_delay_variation"
}

// Live reports whether any traffic decides a requirement in time. Traffic that is slower
// than a required rate leaves it undecided for ever.
func Live(requirement string) bool {
	return IsDelay(requirement) || requirement == "packet_loss_ratio"
}
