// SPDX-License-Identifier: Apache-2.0

package broker

import (
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/drayage/dray/internal/link/broker/wire"
)

// lastStatus is the last status of a link, for callers that cannot wait for its
// goroutine.
type lastStatus struct {
	mu     sync.Mutex
	status LinkStatus
	asked  chan struct{} // closed when the goroutine has updated it; nil: no request is pending
}

// askStatus requests a status update; the returned channel is closed when it
// is done. Requests share one pending update, so that repeated requests do not
// fill the queue of a busy link. The channel is nil if that queue is full.
func (l *link) askStatus() <-chan struct{} {
	l.last.mu.Lock()
	defer l.last.mu.Unlock()
	if l.last.asked != nil {
		return l.last.asked
	}
	answer := make(chan struct{})
	select {
	case l.calls <- func() { l.tell(answer) }:
		l.last.asked = answer
		l.poller.poke()
		return answer
	default:
		return nil
	}
}

func (l *link) tell(answer chan struct{}) {
	s := l.status()
	l.last.mu.Lock()
	defer l.last.mu.Unlock()
	l.last.status, l.last.asked = s, nil
	close(answer)
}

// latest is the last status; it is marked late if the answer is not there yet.
func (l *link) latest(answer <-chan struct{}) LinkStatus {
	l.last.mu.Lock()
	defer l.last.mu.Unlock()
	s := l.last.status
	select {
	case <-answer:
	default:
		s.Late = true
	}
	return s
}

// status is the current state of the link.
func (l *link) status() LinkStatus {
	s := LinkStatus{
		Name: l.entry.Link.Name, Kind: l.entry.Link.Kind, State: l.state(), Generation: l.entry.Generation,
		Adopted: l.adopted, Rebinds: l.rebinds, LastError: l.lastError,
	}
	if l.memory != nil {
		s.Pages, s.Bytes = l.memory.pages, l.memory.geometry.Size
	}
	for _, e := range l.ends {
		if e.conn != nil && e.conn.telemetry >= 0 {
			s.Bytes += wire.TelemetrySize(e.spec().queues())
		}
		s.Ends = append(s.Ends, e.status())
	}
	return s
}

func (l *link) state() string {
	connected, active, wanted := 0, 0, len(l.ends)
	for _, e := range l.ends {
		if l.entry.Link.Kind == KindNetdev && !e.spec().here() {
			wanted--
		}
		if e.conn != nil && e.conn.welcomed {
			connected++
			if e.conn.active {
				active++
			}
		}
	}
	switch {
	case connected == 0:
		return StateEmpty
	case active == wanted:
		return StateActive
	case connected < wanted:
		return StateHalf
	}
	return StateOffered
}

var modes = [...]string{wire.ModeBusy: "busy", wire.ModeAdaptive: "adaptive", wire.ModeSleeping: "sleeping"}

// answerTime bounds an end's time to answer STATS.
const answerTime = time.Second

func (e *end) status() EndStatus {
	s := EndStatus{Function: e.spec().Function, Port: e.spec().Port, Refused: e.refused}
	c := e.conn
	if c == nil || !c.welcomed {
		return s
	}
	s.Connected, s.Active, s.PID = true, c.active, c.pid
	s.Mode, s.Queues, s.Answers = modes[c.hello.Mode], int(c.hello.Queues), c.asked.IsZero() || time.Since(c.asked) < answerTime
	if s.Queues == 0 {
		s.Queues = e.spec().queues()
	}
	if c.asked.IsZero() { // for the next call: an end answers when it polls
		c.asked = time.Now()
		e.say(c, wire.Message{Type: wire.TypeStats})
	}
	t, err := c.readTelemetry(e.spec().queues())
	if err != nil {
		t = new(wire.Telemetry)
	}
	s.Generation, s.Depth, s.Latency = t.Generation, t.Depth, latencyOf(t, c.hello)
	if t.State == 0 {
		s.Generation = 0
	}
	s.count(t.Counters, c.stats)
	s.Classes = e.classesStatus(c, t)
	return s
}

// readTelemetry copies an end's report. Reading a file cannot fault, whatever
// the end does to it.
func (c *conn) readTelemetry(queues int) (*wire.Telemetry, error) {
	b := make([]byte, wire.TelemetrySize(queues))
	n, err := unix.Pread(c.telemetry, b, 0)
	if err != nil {
		return nil, err
	}
	return wire.ParseTelemetry(b[:n], queues)
}

// count takes the higher of two readings of monotonic counters.
func (s *EndStatus) count(c [wire.CounterCount]uint64, answer *wire.Stats) {
	if answer != nil {
		for i, n := range answer.Counters {
			c[i] = max(c[i], n)
		}
	}
	s.Counters = Counters{
		TxPackets: c[0], TxBytes: c[1], RxPackets: c[2], RxBytes: c[3], TxNoBuffer: c[4],
		TxDropped: c[5], TxCopied: c[6], RxDropped: c[7], RxCopied: c[8], Misuse: c[9],
	}
	for i, name := range wire.ViolationNames {
		if n := c[wire.CounterCount-wire.ViolationCount+i]; n > 0 {
			if s.Violations == nil {
				s.Violations = map[string]uint64{}
			}
			s.Violations[name] = n
		}
	}
}

// Plausible clock rates for a histogram, in Hz.
const (
	tickHzMin = 1e6
	tickHzMax = 1e11
)

// latencyOf converts ticks to nanoseconds with the rate that the function reports.
func latencyOf(t *wire.Telemetry, hello *wire.Hello) Latency {
	hz := float64(1e9)
	if hello.Clock == wire.ClockCounter {
		hz = float64(t.TickHz) // measured for longer than the one in HELLO
		if hz < tickHzMin || hz > tickHzMax {
			hz = float64(hello.TickHz)
		}
	}
	var l Latency
	if hz < tickHzMin || hz > tickHzMax {
		return l
	}
	for i, n := range t.Histogram {
		if n == 0 {
			continue
		}
		l.Count += n
		l.Buckets = append(l.Buckets, Bucket{
			Index: i, Low: float64(wire.HistogramLow(i)) * 1e9 / hz, High: float64(wire.HistogramLow(i+1)) * 1e9 / hz, Count: n})
	}
	return l
}
