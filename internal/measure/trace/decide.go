// SPDX-License-Identifier: Apache-2.0

package trace

import (
	"fmt"

	"github.com/drayage/dray/internal/result/stats"
	"github.com/drayage/dray/internal/result/verdict"
)

const (
	// saturated is the share of the time from which a thread that runs has no time left.
	saturated = 0.95
	// polls is the same without traffic: then a full CPU says nothing.
	polls = 0.9
	// starved is the share of the time for which a thread waits for a CPU that explains delays.
	starved = 0.05
	// unused is a share of the time so small that the kernel forwards for the function.
	unused = 0.001
)

// culprit is a hop, with the link on which packets wait until it takes them.
type culprit struct {
	hop   *Hop
	waits *Hop // nil: it is not observed apart
}

func (c culprit) share() float64 {
	if c.waits == nil {
		return c.hop.SlowShare
	}
	return c.hop.SlowShare + c.waits.SlowShare
}

// culprits are the hops of the path, each but once.
func (r *Result) culprits() []culprit {
	var all []culprit
	for i := 0; i < len(r.Hops); i++ {
		c := culprit{hop: &r.Hops[i]}
		if c.hop.Waits && i+1 < len(r.Hops) {
			c = culprit{&r.Hops[i+1], c.hop}
			i++
		}
		all = append(all, c)
	}
	return all
}

// decide names what adds most to the delay of slow packets.
func (r *Result) decide() {
	if r.Slowest == 0 {
		r.Decides = fmt.Sprintf("too few packets to say where the slow ones spend their time: %s, and %d are needed; give a higher --load, or a longer --duration", r.seen(), 2*stats.Beyond)
		return
	}
	var worst culprit
	for _, c := range r.culprits() {
		if worst.hop == nil || c.share() > worst.share() {
			worst = c
		}
	}
	name := worst.hop.Name
	if worst.waits == nil && worst.hop.Waits {
		name = "waiting on " + name + " for the receiver at the path's end"
	}
	r.Decides = fmt.Sprintf("in %s, %s adds %s of %s", r.slow(), name, verdict.FormatDuration(worst.share()), verdict.FormatDuration(r.Whole.SlowShare))
	if worst.waits != nil {
		r.Decides += fmt.Sprintf(", %s of it before it takes them from %s", verdict.FormatDuration(worst.waits.SlowShare), worst.waits.Name)
	}
	if worst.hop.CPU != nil {
		r.Slow = worst.hop.CPU.why(worst.hop.Functions[0])
	}
}

func (r *Result) seen() string {
	if r.Packets == 1 {
		return "1 was seen at every port"
	}
	return fmt.Sprintf("%d were seen at every port", r.Packets)
}

// slow names the slowest packets.
func (r *Result) slow() string {
	if r.Slowest > stats.Beyond {
		return fmt.Sprintf("the slowest %d %% of the packets", 100-Decisive)
	}
	return fmt.Sprintf("the slowest %d of %d packets", r.Slowest, r.Packets)
}

// why is what the use of the CPU says of a slow function.
func (u *Use) why(function string) string {
	where := fmt.Sprintf("its thread %s runs for %.0f %% of the time, last on CPU %d", u.Thread, 100*u.Ran, u.CPU)
	switch {
	case u.Waited >= starved:
		return fmt.Sprintf("function %s has too little CPU: %s, and waits for one for %.0f %%", function, where, 100*u.Waited)
	case u.Ran >= saturated && u.Rest < polls:
		return fmt.Sprintf("function %s is CPU-bound: %s, but without traffic all its threads for %.0f %%", function, where, 100*u.Rest)
	case u.Ran >= saturated:
		return fmt.Sprintf("function %s polls, so its CPU does not show how busy it is: %s", function, where)
	case u.Cores.Value < unused:
		return fmt.Sprintf("function %s uses no CPU of its own: the kernel passes its packets on", function)
	}
	return fmt.Sprintf("function %s is not short of CPU: %s", function, where)
}
