// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"
)

// counts are from a line of draygen's JSON: for an interval, or in total.
type counts struct {
	Sent, Unsent, Received, Lost, Duplicates, Corrupt int
}

// arrived are all packets, including those of a restarted sender, which counts
// from 0: to the sink these are duplicates.
func (n counts) arrived() int { return n.Received + n.Duplicates }

type tick struct {
	counts
	from, to nanoseconds
}

// instance is one process of a function that runs draygen.
type instance struct {
	ticks  []tick
	result *counts // nil if it was killed, or runs
}

// instances are one function's instances, in order.
type instances []instance

// roles reads a function's output so far.
func (b *bench) roles(chain, function string) instances {
	b.t.Helper()
	var list instances
	for _, text := range strings.Split(b.want(0, "logs", chain, function).Stdout, "\n") {
		var line struct {
			Event  string
			FromNs nanoseconds `json:"from_ns"`
			ToNs   nanoseconds `json:"to_ns"`
			counts
		}
		if !strings.HasPrefix(text, "{") || json.Unmarshal([]byte(text), &line) != nil {
			continue // EAL output, or a line truncated by SIGKILL
		}
		if line.Event == "ready" {
			list = append(list, instance{})
			continue
		}
		if len(list) == 0 {
			b.t.Fatalf("%s of %s is not ready, but says %s", function, chain, text)
		}
		last := &list[len(list)-1]
		switch line.Event {
		case "interval":
			last.ticks = append(last.ticks, tick{line.counts, line.FromNs, line.ToNs})
		case "result":
			last.result = &line.counts
		}
	}
	return list
}

// sum adds up the counts of all instances: their results, or the counts that they
// reported before they were killed.
func (list instances) sum(of func(counts) int) int {
	total := 0
	for _, i := range list {
		if i.result != nil {
			total += of(*i.result)
			continue
		}
		for _, t := range i.ticks {
			total += of(t.counts)
		}
	}
	return total
}

// between is how many packets arrived in intervals between two times.
func (list instances) between(from, to nanoseconds) int {
	total := 0
	for _, i := range list {
		for _, t := range i.ticks {
			if t.from >= from && t.to <= to {
				total += t.arrived()
			}
		}
	}
	return total
}

// lostBefore is how many packets the sinks missed until that time.
func (list instances) lostBefore(at nanoseconds) int {
	total := 0
	for _, i := range list {
		for _, t := range i.ticks {
			if t.to <= at {
				total += t.Lost
			}
		}
	}
	return total
}

// gap is the longest time without a packet that overlaps two times, according to
// intervals: accurate to faultTick.
func (list instances) gap(from, to nanoseconds) time.Duration {
	return list.longest(func(begin, end nanoseconds) bool { return end > from && begin < to })
}

// gapBefore is the longest gap that ended before that time.
func (list instances) gapBefore(at nanoseconds) time.Duration {
	return list.longest(func(_, end nanoseconds) bool { return end <= at })
}

func (list instances) longest(counts func(begin, end nanoseconds) bool) time.Duration {
	var last nanoseconds // until when packets arrived
	var longest time.Duration
	for _, i := range list {
		for _, t := range i.ticks {
			if t.arrived() == 0 {
				continue
			}
			if last != 0 && counts(last, t.from) {
				longest = max(longest, time.Duration(t.from-last))
			}
			last = t.to
		}
	}
	return longest.Round(10 * time.Millisecond)
}

// lostBetween is how many of the senders' packets never arrived. It is exact if
// all have reported results; a killed process has not reported its last interval.
func lostBetween(senders, sinks instances) (lost int, exact bool) {
	lost = senders.sum(func(n counts) int { return n.Sent }) - sinks.sum(counts.arrived)
	exact = true
	for _, i := range append(append(instances{}, senders...), sinks...) {
		exact = exact && i.result != nil
	}
	return lost, exact
}

// reported says whether the last instance has ended with a result.
func (list instances) reported() bool {
	return len(list) > 0 && list[len(list)-1].result != nil
}

func gapText(gap time.Duration) string {
	if gap == 0 {
		return fmt.Sprint("under ", faultTick)
	}
	return gap.String()
}

func lossText(lost int, exact bool) string {
	if exact {
		return fmt.Sprint(lost)
	}
	return fmt.Sprintf("about %d", max(lost, 0))
}

// tail is the last lines of a log.
func tail(log string) string {
	lines := strings.Split(log, "\n")
	return strings.Join(lines[max(0, len(lines)-6):], "\n")
}
