// SPDX-License-Identifier: Apache-2.0

package instrument

import (
	"errors"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"time"
)

// iperfReport is the delivery report of one UDP stream of iperf 2.
type iperfReport struct {
	Duration  time.Duration // from the first to the last arrival
	Sending   time.Duration // the sender's own; Duration if it is unknown
	Jitter    time.Duration // RFC 3550
	Sent      uint64
	Received  uint64 // at most Sent
	Reordered uint64
	// Stamped is the mean of the receiver's stamps minus the sender's, by the clock of
	// each, so it may be negative; nil: the server printed none.
	Stamped *time.Duration
}

// span is the divisor for arrivals. A receiver that wakes late finds the first
// datagrams waiting and sees a shorter stream than was sent: its own time alone
// would give a rate that was never offered.
func (r iperfReport) span() time.Duration { return max(r.Duration, r.Sending) }

var (
	// A server's report ends like this with and without -e:
	// "[  1] 0.0000-2.0002 sec   352 KBytes  1.44 Mbits/sec   0.001 ms 0/20004 (0%) …".
	iperfTotal = regexp.MustCompile(`(?m)^\[ *[0-9]+\] +([0-9.]+)-([0-9.]+) sec .*? ([-0-9.a-z]+) ms +(-?[0-9]+)/ *(-?[0-9]+) \(`)
	// With -e there follow the mean, least, greatest and standard deviation of the stamps,
	// or "-/-/-/-" if there are none.
	iperfStamps    = regexp.MustCompile(`^[^()]*%\) +(-?[0-9.]+)/ *-?[0-9.]+/ *-?[0-9.]+/ *[0-9.]+ ms`)
	iperfReordered = regexp.MustCompile(`(?m)^\[ *[0-9]+\] .*sec +([0-9]+) datagrams received out-of-order`)
	// The client's own count includes the datagram that ends the stream; the server's
	// does not.
	iperfWritten = regexp.MustCompile(`(?m)^\[ *[0-9]+\] +0\.0000-([0-9.]+) sec .*? [0-9]+/[0-9]+ +[0-9]+ pps`)
	iperfSent    = regexp.MustCompile(`(?m)^\[ *[0-9]+\] Sent ([0-9]+) datagrams`)
)

// parseIperf reads the final report of an iperf 2 UDP server, and the client's
// count of sent datagrams. The client's delivery figures are not used: they are 0
// or −1 if the server's report was lost.
func parseIperf(server, client []byte) (iperfReport, error) {
	totals := iperfTotal.FindAllSubmatch(server, -1)
	ends := iperfTotal.FindAllIndex(server, -1)
	if len(totals) == 0 {
		return iperfReport{}, fmt.Errorf("the server reports no stream: nothing arrived, or the end of the stream was lost: %q", lastWords(server))
	}
	m := totals[len(totals)-1]
	begin, err1 := strconv.ParseFloat(string(m[1]), 64)
	end, err2 := strconv.ParseFloat(string(m[2]), 64)
	jitter, err3 := strconv.ParseFloat(string(m[3]), 64)
	lost, err4 := strconv.ParseInt(string(m[4]), 10, 64)
	total, err5 := strconv.ParseInt(string(m[5]), 10, 64)
	if err := errors.Join(err1, err2, err3, err4, err5); err != nil {
		return iperfReport{}, fmt.Errorf("the server's report %q: %w", m[0], err)
	}
	if lost < 0 || total < 1 || lost > total {
		return iperfReport{}, fmt.Errorf("%d lost of %d is impossible: datagrams were duplicated, or counters wrapped", lost, total)
	}
	r := iperfReport{Sent: uint64(total), Received: uint64(total - lost)}
	var err error
	if r.Duration, err = seconds("duration", end-begin); err != nil {
		return iperfReport{}, err
	}
	if r.Jitter, err = seconds("jitter", jitter/1000); err != nil {
		return iperfReport{}, err
	}
	if r.Duration == 0 {
		return iperfReport{}, errors.New("the measured interval is empty")
	}
	if m := iperfReordered.FindSubmatch(server); m != nil {
		if r.Reordered, err = strconv.ParseUint(string(m[1]), 10, 64); err != nil {
			return iperfReport{}, fmt.Errorf("reordered datagrams: %w", err)
		}
	}
	if r.Stamped, err = stamped(server[ends[len(ends)-1][1]:]); err != nil {
		return iperfReport{}, err
	}
	r.Sending = r.Duration
	if m := iperfWritten.FindSubmatch(client); m != nil {
		sending, _ := strconv.ParseFloat(string(m[1]), 64)
		if r.Sending, err = seconds("sending time", sending); err != nil {
			return iperfReport{}, err
		}
	}
	if m := iperfSent.FindSubmatch(client); m != nil {
		n, err := strconv.ParseUint(string(m[1]), 10, 64)
		if err != nil || n > math.MaxInt64 {
			return iperfReport{}, fmt.Errorf("the client says it sent %s datagrams", m[1])
		}
		r.Sent = max(r.Sent, n-min(n, 1))
	}
	return r, nil
}

// stamped is the mean of the stamps in what follows the loss of a server's report.
func stamped(rest []byte) (*time.Duration, error) {
	m := iperfStamps.FindSubmatch(rest)
	if m == nil {
		return nil, nil
	}
	mean, err := strconv.ParseFloat(string(m[1]), 64)
	if err != nil || math.Abs(mean) > mostStamp {
		return nil, fmt.Errorf("a mean latency of %s ms is impossible", m[1])
	}
	d := time.Duration(math.Round(mean * float64(time.Millisecond)))
	return &d, nil
}

// mostStamp is more than two clocks of one machine can differ, ms: a day.
const mostStamp = 86_400_000.0
