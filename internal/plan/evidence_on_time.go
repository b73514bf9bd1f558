// SPDX-License-Identifier: Apache-2.0

package plan

import "fmt"

// judgeOnTime compares the time that a message has, if it is sent at the beginning of its
// transmission window, with the latency of as many packets as must be on time. A lost
// message is not.
func (e estimate) judgeOnTime() Evidence {
	share, within := e.link.Requires.OnTime, e.link.SlotLoad().Transit()
	percentile := threeDigits(100*float64(share)-99) + 99 // keeps the digits that matter
	ev := Evidence{Requirement: "on_time", Required: fmt.Sprintf("≥ %v, each within %v", share, within)}
	f, lost := e.latency(100*float64(share)), e.loss()
	if !f.known() || !lost.known() {
		ev.Expected, ev.Source = unknown, fmt.Sprintf("no evidence reaches p%v", percentile)
		return ev
	}
	f, why := e.queued(f)
	if why != "" {
		ev.Expected, ev.Source = unknown, why
		return ev
	}
	ev.Expected, ev.Source = fmt.Sprintf("%v at p%v", duration(f.value), percentile), f.source
	if lost.value > 1-float64(share) {
		ev.Expected = "a loss of " + lossText(lost.value)
		ev.Source = lost.source
		return ev
	}
	ev.Meets = f.value <= float64(within)
	return ev
}
