// SPDX-License-Identifier: Apache-2.0

// Package verify measures the links of a running chain: it decides which trials
// each requirement takes, runs them over the functions' own ports, and returns
// the records. It judges nothing: if a judge cannot decide, it measures more.
package verify

import (
	"fmt"
	"time"

	"github.com/drayage/dray/internal/function/runtime"
	"github.com/drayage/dray/internal/measure/instrument"
	"github.com/drayage/dray/internal/measure/live"
	"github.com/drayage/dray/internal/measure/runner"
	"github.com/drayage/dray/internal/plan"
	"github.com/drayage/dray/internal/result/record"
	"github.com/drayage/dray/internal/result/verdict"
)

// Input is the input of Links. Plan, Sandboxes or Far, Run and Env must be set.
type Input struct {
	Plan      *plan.Plan
	Sandboxes map[string]*runtime.Sandbox // by function: where its ports are
	// Device is how a host program opens a dpdk port: EAL arguments, and the device's
	// name. It must be set if a port has that face.
	Device func(plan.End) (eal []string, name string, err error)
	// Far is where the ports are, if not on this machine; nil: in Sandboxes. Then only
	// draygen and iperf3 measure, and how busy this machine is does not matter.
	Far func(plan.End) (instrument.Endpoint, error)
	// Live reads the reports of the chain's native ports. It must be set if
	// Options.Held names a link.
	Live    live.Source
	Options Options
	Run     string // id of the run, for the records
	// Env describes the current machine, engines and interfaces before each trial;
	// see runner.Environment.
	Env       func() record.Environment
	EnvOf     func(plan.End) record.Environment // of the machine of a sender, if there are several; nil: Env
	Own       func() (time.Duration, error)     // see runner.Runner.Own
	OtherRuns func() int                        // see runner.Runner.OtherRuns
	Marks     []string                          // that every record carries, such as record.MarkShared
	Sink      runner.Sink                       // nil: records are only returned
	Earlier   []record.Trial                    // made before this process: they are not made again
	Progress  func(runner.Progress)             // before each trial; nil: none
	Prolong   func(text string)                 // before the run is prolonged; nil: none

	next map[way]string // of paths: see passing
}

// Profile is how long to measure.
type Profile string

const (
	// Standard is long enough to judge the usual requirements in about a minute a link.
	Standard Profile = "standard"
	// Quick takes the fewest trials that decide the usual requirements on an idle
	// machine, in under 20 s a link, and makes no cross-checks. Figures close to
	// their limit stay undecided.
	Quick Profile = "quick"
	// Thorough at least halves Standard's intervals.
	Thorough Profile = "thorough"
)

// ParseProfile returns the profile of that name; "" is Standard.
func ParseProfile(name string) (Profile, error) {
	switch p := Profile(name); p {
	case "":
		return Standard, nil
	case Standard, Quick, Thorough:
		return p, nil
	}
	return "", fmt.Errorf("no profile %q: write %s, %s or %s", name, Quick, Standard, Thorough)
}

// Options are the user's choices. The zero value is Standard, sized from the
// requirements, with the order of seed 0.
type Options struct {
	Profile  Profile
	Duration time.Duration // of each trial; 0: sized from the requirement
	Rounds   int           // 0: the profile's, prolonged if undecided
	Seed     uint64        // of the random order
	// EveryTraffic measures bitrates with each kind of traffic that the ports accept,
	// instead of only the link's.
	EveryTraffic bool
	// Far means ports on other machines, see Input.Far.
	Far bool
	// Held are links of native ports that applications have opened, so that no instrument
	// can. Their applications' own traffic is observed instead.
	Held []string
}

// pace is the meaning of a profile.
type pace struct {
	rounds int
	// streams is the number of draygen rounds: trials differ with other work on the
	// machine, and many short ones bound that better than a few long ones.
	streams    int
	warmups    int
	throughput time.Duration // of one TCP trial; a datagram trial takes half as long
	// surplus is the multiple of the minimum number of samples, over all rounds.
	surplus float64
	// least is the shortest trial by draygen; other instruments take whole seconds.
	least   time.Duration
	longest time.Duration // of one trial
	// observed is the least number of intervals in which an application's own traffic is
	// observed.
	observed int
	looks    int // see record.Trial.Looks
	// crossChecks are made by other instruments, one round each.
	crossChecks bool
}

func (o Options) pace() pace {
	p := pace{rounds: 5, streams: 10, warmups: 1, throughput: time.Second, surplus: 3, least: shortest, longest: 10 * time.Second, observed: 24, looks: verdict.MaxLooks, crossChecks: true}
	switch o.Profile {
	case Quick:
		p = pace{rounds: verdict.MinTrials, streams: verdict.MinTrials, throughput: time.Second, surplus: 1.1, least: shortest / 2, longest: 2 * time.Second, observed: 12, looks: 1}
	case Thorough:
		p = pace{rounds: 15, streams: 30, warmups: 1, throughput: 5 * time.Second, surplus: 10, least: shortest, longest: 60 * time.Second, observed: 60, looks: verdict.MaxLooks, crossChecks: true}
	}
	p.crossChecks = p.crossChecks && !o.Far
	if o.Rounds > 0 {
		p.rounds, p.streams, p.observed, p.looks = o.Rounds, o.Rounds, o.Rounds, 1
	}
	return p
}
