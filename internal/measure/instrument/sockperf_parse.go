// SPDX-License-Identifier: Apache-2.0

package instrument

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/drayage/dray/internal/result/record"
)

const (
	sockperfWarmup   = 400 * time.Millisecond // TEST_START_WARMUP_MSEC
	sockperfCooldown = 50 * time.Millisecond  // TEST_END_COOLDOWN_MSEC
	// stallFloor is the shortest final wait for an answer that counts as a loss; a
	// request may be in flight when the time is up.
	stallFloor = 100 * time.Millisecond
)

var (
	sockperfTotal  = regexp.MustCompile(`\[Total Run\] RunTime=([0-9.]+) sec; .*SentMessages=([0-9]+); ReceivedMessages=([0-9]+)`)
	sockperfFaults = regexp.MustCompile(`# dropped messages = ([0-9]+); # duplicated messages = ([0-9]+); # out-of-order messages = ([0-9]+)`)
)

// pong is one request and its answer, in ns of sockperf's clock.
type pong struct{ tx, rx int64 }

// parseSockperf reads the output and the full log of `sockperf pp --full-rtt`
// that sent rate messages/s for d.
//
// sockperf waits for each answer to the end of the test, so the first lost
// message stops the ping-pong without being counted as dropped. It is found by
// comparing totals, and by the time from the last answer to the end.
func parseSockperf(out, log []byte, rate uint64, d time.Duration) (*record.Latency, error) {
	if rate == 0 {
		return nil, errors.New("no message rate")
	}
	pongs, err := parsePongs(log)
	if err != nil {
		return nil, err
	}
	l := &record.Latency{MessageBytes: messageBytes, Rate: rate}
	text := stripANSI(out)
	if bytes.Contains(text, []byte("No messages were received")) {
		l.Lost, l.Sent, l.Stalled = 1, 1, d
		l.Histogram = record.FromHDR(record.NewHDR())
		return l, nil
	}
	total := sockperfTotal.FindSubmatch(text)
	if total == nil {
		return nil, fmt.Errorf("no totals in its output: %q", lastWords(text))
	}
	if err := countFaults(l, text); err != nil {
		return nil, err
	}
	if err := fillHistogram(l, pongs, int64(time.Second)/int64(rate)); err != nil {
		return nil, err
	}
	stalled, err := stall(total, pongs, d)
	if err != nil {
		return nil, err
	}
	if stalled > 0 {
		l.Lost, l.Stalled = l.Lost+1, stalled
	}
	if len(pongs) == 0 && l.Lost == 0 {
		return nil, errors.New("no request was answered between its warm-up and its end: measure for longer")
	}
	l.Sent = uint64(len(pongs)) + l.Lost
	return l, nil
}

// countFaults copies sockperf's own counts.
func countFaults(l *record.Latency, text []byte) error {
	m := sockperfFaults.FindSubmatch(text)
	if m == nil {
		return nil // it omits this line if it has no valid sample
	}
	for i, field := range []*uint64{&l.Lost, &l.Duplicated, &l.Reordered} {
		n, err := strconv.ParseUint(string(m[i+1]), 10, 64)
		if err != nil || n > maxSamples {
			return fmt.Errorf("impossible count in %q", m[0])
		}
		*field = n
	}
	return nil
}

// stall is how long the last request had been unanswered when the test ended; 0
// if it was answered, or may still have been in flight.
func stall(total [][]byte, pongs []pong, d time.Duration) (time.Duration, error) {
	runtime, err1 := strconv.ParseFloat(string(total[1]), 64)
	sent, err2 := strconv.ParseUint(string(total[2]), 10, 64)
	received, err3 := strconv.ParseUint(string(total[3]), 10, 64)
	if err := errors.Join(err1, err2, err3); err != nil {
		return 0, fmt.Errorf("totals %q: %w", total[0], err)
	}
	ran, err := seconds("run time", runtime)
	if err != nil {
		return 0, err
	}
	if received >= sent {
		return 0, nil
	}
	if len(pongs) == 0 {
		// It stalled within the warm-up, or the test was too short for any sample.
		return max(0, d-sockperfWarmup-sockperfCooldown), nil
	}
	// The first sample was sent 400 ms after the start, and the last 50 ms before the
	// unanswered request.
	end := pongs[0].tx + int64(ran-sockperfWarmup)
	waited := time.Duration(end - pongs[len(pongs)-1].tx - int64(sockperfCooldown))
	if slowest := slowestPong(pongs); waited < stallFloor || waited < 2*slowest {
		return 0, nil
	}
	return min(waited, ran), nil
}

func slowestPong(pongs []pong) time.Duration {
	var slowest int64
	for _, p := range pongs {
		slowest = max(slowest, p.rx-p.tx)
	}
	return time.Duration(slowest)
}

// parsePongs reads the full log: CSV of packet, txTime(sec), rxTime(sec),
// rtt(usec) between rules and headings.
func parsePongs(log []byte) ([]pong, error) {
	var pongs []pong
	for number, line := range strings.Split(string(log), "\n") {
		if line == "" || line[0] < '0' || line[0] > '9' {
			continue // a rule, a heading, or a line of statistics
		}
		f := strings.Split(line, ", ")
		if len(f) != 4 {
			return nil, fmt.Errorf("its log is malformed in line %d: %q", number+1, lastWords([]byte(line)))
		}
		tx, err1 := nanoseconds(f[1])
		rx, err2 := nanoseconds(f[2])
		if err := errors.Join(err1, err2); err != nil {
			return nil, fmt.Errorf("its log is malformed in line %d: %w", number+1, err)
		}
		if rx < tx || len(pongs) > 0 && tx < pongs[len(pongs)-1].tx {
			return nil, fmt.Errorf("its log goes back in time in line %d: %q", number+1, lastWords([]byte(line)))
		}
		if pongs = append(pongs, pong{tx, rx}); len(pongs) > maxSamples {
			return nil, fmt.Errorf("its log holds over %d samples", maxSamples)
		}
	}
	return pongs, nil
}

// maxClock bounds a time in a log: 100 days.
const maxClock = 100 * 24 * 3600

// nanoseconds reads a time such as "2.401898692", in seconds, exactly.
func nanoseconds(s string) (int64, error) {
	whole, frac, _ := strings.Cut(s, ".")
	if len(frac) > 9 {
		return 0, fmt.Errorf("time %q has more than nine decimals", s)
	}
	sec, err1 := strconv.ParseUint(whole, 10, 32)
	ns, err2 := strconv.ParseUint((frac + "000000000")[:9], 10, 32)
	if err := errors.Join(err1, err2); err != nil {
		return 0, fmt.Errorf("time %q: %w", s, err)
	}
	if sec > maxClock {
		return 0, fmt.Errorf("time %q is impossible", s)
	}
	return int64(sec)*int64(time.Second) + int64(ns), nil
}

// fillHistogram records each round trip from the time its request was due.
//
// sockperf sends on a schedule of one request per interval (ns), but never before
// the previous answer. If that answer came after the request was due, the wait is
// added to the round trip. Otherwise a slow link would have few slow samples, as
// it would also have few requests. If the client was late although it had the
// answer, it caused the delay itself: it is counted in LateSends, and its overdue
// requests are due when it wakes.
func fillHistogram(l *record.Latency, pongs []pong, interval int64) error {
	hdr := record.NewHDR()
	phase := schedulePhase(pongs, interval)
	ownDelay := interval / 10
	awake, answered := int64(0), int64(0)
	for k, p := range pongs {
		due := max(phase+int64(k)*interval, awake)
		wait := max(0, answered-due)
		if p.tx-max(due, answered) > ownDelay {
			l.LateSends++
			awake = p.tx
		}
		rtt := p.rx - p.tx + wait
		if err := hdr.RecordValue(max(rtt, 1)); err != nil {
			return fmt.Errorf("a round trip of %v: %w", time.Duration(rtt), err)
		}
		if k == 0 || time.Duration(p.rx-p.tx) < l.MinRTT {
			l.MinRTT = time.Duration(p.rx - p.tx)
		}
		answered = p.rx
	}
	l.Histogram = record.FromHDR(hdr)
	return nil
}

// schedulePhase is when request 0 was due: requests are never early, so the most
// punctual one shows the schedule.
func schedulePhase(pongs []pong, interval int64) int64 {
	if len(pongs) == 0 {
		return 0
	}
	phase := pongs[0].tx
	for k, p := range pongs {
		phase = min(phase, p.tx-int64(k)*interval)
	}
	return phase
}
