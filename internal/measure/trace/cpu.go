// SPDX-License-Identifier: Apache-2.0

package trace

import (
	"time"

	"github.com/drayage/dray/internal/host"
	"github.com/drayage/dray/internal/node"
)

// Busy is how much a function used the CPUs in one interval.
type Busy struct {
	All    float64 `json:"-"`      // CPU time of all its threads per time
	Thread string  `json:"thread"` // the busiest
	CPU    int     `json:"cpu"`    // on which that ran last
	Ran    float64 `json:"ran"`    // its share of the time
	Waited float64 `json:"waited"` // the share of the time in which it could run and had no CPU
}

// clock is the CPU times of a function's threads at one time.
type clock struct {
	at      time.Time
	threads map[int]host.ThreadTime
}

func clockOf(live *node.Live, function string) (clock, error) {
	c := clock{time.Now(), map[int]host.ThreadTime{}}
	threads, err := live.FunctionCgroup(function).Threads()
	for _, t := range threads {
		c.threads[t.ID] = t
	}
	return c, err
}

// since is what the threads that lived throughout did.
func (c clock) since(before clock) Busy {
	span := c.at.Sub(before.at).Seconds()
	var b Busy
	if span <= 0 {
		return b
	}
	for id, now := range c.threads {
		was, lived := before.threads[id]
		if !lived {
			continue
		}
		ran := (now.Ran - was.Ran).Seconds() / span
		b.All += ran
		if ran > b.Ran || b.Thread == "" {
			b.Thread, b.CPU, b.Ran, b.Waited = now.Name, now.CPU, ran, (now.Waited-was.Waited).Seconds()/span
		}
	}
	return b
}
