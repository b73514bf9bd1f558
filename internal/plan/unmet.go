// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"strings"

	"github.com/drayage/dray/internal/spec/inventory"
)

// violateUnmet reports every requirement that the evidence does not support.
func (p *planner) violateUnmet(n *needs, t *inventory.Transport, evidence []Evidence) {
	for _, ev := range evidence {
		if ev.Meets {
			continue
		}
		p.violate(Violation{
			Subject:    n.subject(),
			Constraint: ev.Requirement + " " + ev.Required,
			Reason:     unmetReason(ev, t.Name),
			Fix:        unmetFix(ev, n) + calibrateFix(ev, t),
			Pos:        n.requirement(ev.Requirement),
		})
	}
}

func unmetReason(ev Evidence, transport string) string {
	switch {
	case ev.Expected == unknown:
		return fmt.Sprintf("%s has no evidence for this: %s", transport, ev.Source)
	case ev.Requirement == "mtu":
		return fmt.Sprintf("its ports have an mtu of %s", ev.Expected)
	case ev.Requirement == "max_bitrate":
		return fmt.Sprintf("its rate is %s (%s)", ev.Expected, ev.Source)
	case ev.Requirement == "min_bitrate", ev.Requirement == "packet_rate":
		return fmt.Sprintf("%s is expected to carry %s (%s)", transport, ev.Expected, ev.Source)
	case ev.Requirement == "packet_loss_ratio":
		return fmt.Sprintf("%s is expected to lose %s (%s)", transport, ev.Expected, ev.Source)
	default:
		return fmt.Sprintf("%s is expected to need %s (%s)", transport, ev.Expected, ev.Source)
	}
}

func unmetFix(ev Evidence, n *needs) string {
	const orMeasure = "set on_infeasible: warn under policy to measure it anyway"
	switch {
	case ev.Requirement == "mtu":
		return fmt.Sprintf("set mtu: %d on every port of the link", n.link.Requires.MTU)
	case ev.Requirement == "max_bitrate":
		return fmt.Sprintf("set qos to a tbf with a rate of at most %v, or leave out qos", n.link.Requires.MaxBitrate)
	case ev.Expected == unknown:
		return "ask for less, or " + orMeasure
	case ev.Requirement == "min_bitrate" && n.tight != nil && n.goodput(shapedRate(n.tight)) < uint64(n.link.Requires.MinBitrate):
		return fmt.Sprintf("raise the rate of the %s, require at most %s, or %s", n.tight.Kind, ev.Expected, orMeasure)
	case ev.Requirement == "min_bitrate", ev.Requirement == "packet_rate":
		return fmt.Sprintf("require at most %s, or %s", ev.Expected, orMeasure)
	default:
		return ev.allow() + ", or " + orMeasure
	}
}

// calibrateFix suggests a calibration if only a stated default contradicts the
// requirement and `dray calibrate` supports the transport.
func calibrateFix(ev Evidence, t *inventory.Transport) string {
	if !strings.HasPrefix(ev.Source, statedDefault) || t.Caps.Tunnel || t.Caps.SameNetns || t.Caps.MinEnds < 2 {
		return ""
	}
	return fmt.Sprintf("; stated defaults are cautious: run `dray calibrate %s` to use this host's own figures", t.Name)
}
