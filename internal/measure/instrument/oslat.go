// SPDX-License-Identifier: Apache-2.0

package instrument

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/drayage/dray/internal/result/record"
)

// Stalls are the interruptions of a spinning thread.
type Stalls struct {
	Longest time.Duration // of all interruptions, ns; resolution 1 µs
	Ticks   float64       // timer interrupts of the thread's CPU, 1/s
}

// spinWarmUp is how long oslat spins before it measures.
const spinWarmUp = time.Second

// spinScript reads all CPUs' timer interrupts before and after oslat, $1, spins on
// CPU $2 for $3 seconds.
const spinScript = `look() { echo "dray: $1"; cat /proc/uptime /proc/interrupts; }
look before && "$1" -c "$2" -D "$3" && look after`

// Spin measures with oslat the interruptions of an ordinary-priority thread that
// spins on a CPU for length, rounded up to whole seconds. The CPU is in the
// endpoint's machine, or on the host if it has none.
func Spin(ctx context.Context, at Endpoint, cpu int, length time.Duration) (record.Trial, Stalls, error) {
	t := record.Trial{Quantity: record.QSpin, Start: time.Now(), Marks: []string{}}
	path, err := exec.LookPath("oslat")
	if err != nil {
		return t, Stalls{}, errors.New("the program oslat is missing: apt-get install rt-tests")
	}
	length = time.Duration(wholeSeconds(length)) * time.Second
	argv := []string{"/bin/sh", "-c", spinScript, "sh", path, strconv.Itoa(cpu), strconv.Itoa(wholeSeconds(length))}
	t.Instrument = record.Instrument{Name: "oslat", Client: argv, Server: []string{}, Placement: "on the host"}
	if at.Name != "" {
		t.Instrument.Placement = placement(at)
	}
	p, err := launch(at, argv)
	if err != nil {
		return t, Stalls{}, err
	}
	defer p.kill()
	if err := p.endsWithin(ctx, "oslat", length+spinWarmUp+wakePatience); err != nil {
		return t, Stalls{}, err
	}
	t.Duration, t.Raw = length, raw(p.out.bytes(), p.errOut.bytes())
	if p.err != nil {
		return t, Stalls{}, fmt.Errorf("oslat: %w: %s", p.err, p.words())
	}
	s, err := parseSpin(p.out.bytes(), cpu)
	return t, s, err
}

var oslatMost = regexp.MustCompile(`(?m)^\s*Maximum:\s+(\d+) \(us\)`)

// parseSpin reads spinScript's output.
func parseSpin(out []byte, cpu int) (Stalls, error) {
	m := oslatMost.FindSubmatch(out)
	if m == nil {
		return Stalls{}, fmt.Errorf("oslat printed no maximum: %q", lastWords(out))
	}
	most, err := time.ParseDuration(string(m[1]) + "us")
	if err != nil {
		return Stalls{}, fmt.Errorf("oslat printed a maximum of %q", m[1])
	}
	_, rest, some := bytes.Cut(out, []byte("dray: before\n"))
	first, last, both := bytes.Cut(rest, []byte("dray: after\n"))
	if !some || !both {
		return Stalls{}, errors.New("the interrupt counts before and after are missing")
	}
	before, from, err := timerInterrupts(string(first), cpu)
	if err != nil {
		return Stalls{}, err
	}
	after, to, err := timerInterrupts(string(last), cpu)
	if err != nil {
		return Stalls{}, err
	}
	if to <= from || after < before {
		return Stalls{}, fmt.Errorf("%d timer interrupts after %v s, and %d after %v s", before, from, after, to)
	}
	return Stalls{Longest: most, Ticks: float64(after-before) / (to - from)}, nil
}

// timerInterrupts are a CPU's own timer interrupts since boot, and the seconds since
// then, from /proc/uptime followed by /proc/interrupts.
func timerInterrupts(text string, cpu int) (count uint64, uptime float64, err error) {
	lines := strings.Split(text, "\n")
	fields := strings.Fields(lines[0])
	if len(fields) == 0 || len(lines) < 2 {
		return 0, 0, errors.New("/proc/uptime is empty")
	}
	if uptime, err = strconv.ParseFloat(fields[0], 64); err != nil {
		return 0, 0, fmt.Errorf("/proc/uptime: %w", err)
	}
	column := slices.Index(strings.Fields(lines[1]), fmt.Sprintf("CPU%d", cpu))
	if column < 0 {
		return 0, 0, fmt.Errorf("/proc/interrupts has no CPU %d", cpu)
	}
	for _, line := range lines[2:] {
		fields := strings.Fields(line)
		if len(fields) > column+1 && fields[0] == "LOC:" {
			count, err = strconv.ParseUint(fields[column+1], 10, 64)
			return count, uptime, err
		}
	}
	return 0, 0, errors.New("/proc/interrupts has no line LOC for the CPU timers: this needs an x86 machine")
}
