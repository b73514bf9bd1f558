// SPDX-License-Identifier: Apache-2.0

package instrument

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/drayage/dray/internal/measure/spinner"
	"github.com/drayage/dray/internal/result/record"
	"github.com/drayage/dray/internal/spec/cpulist"
)

// spinnerPatience is how long a spinner may take to start, or to print its result.
const spinnerPatience = 10 * time.Second

// Spinner keeps CPUs busy in a function's control group, and can measure what it gets.
type Spinner struct {
	cpus   []int
	length time.Duration
	p      *program
	begin  func() error
	trial  record.Trial
}

// StartSpinner starts a thread on each CPU, which spins for at most most. dray is the path of
// its program. The caller must call Stop.
func StartSpinner(ctx context.Context, dray string, at Endpoint, cpus []int, length, most time.Duration) (*Spinner, error) {
	argv := append([]string{dray}, spinner.Argv(cpus, length, most)...)
	p, begin, err := launchHeld(at, argv)
	if err != nil {
		return nil, err
	}
	s := &Spinner{cpus: cpus, length: length, p: p, begin: begin, trial: record.Trial{Quantity: record.QShare, Marks: []string{}}}
	s.trial.Instrument = record.Instrument{Name: "dray spin", Client: argv, Server: []string{}, Placement: placement(at)}
	if err := await(ctx, p, func(p *program) bool { return strings.HasPrefix(string(p.out.bytes()), spinner.Ready+"\n") }, spinnerPatience); err != nil {
		p.kill()
		return nil, err
	}
	return s, nil
}

// Begin begins the interval that Result waits for.
func (s *Spinner) Begin() error {
	s.trial.Start = time.Now()
	return s.begin()
}

// Result waits for the end of the interval. The threads go on spinning.
func (s *Spinner) Result(ctx context.Context) (record.Trial, error) {
	t := s.trial
	err := await(ctx, s.p, func(p *program) bool { return strings.Count(string(p.out.bytes()), "\n") >= 2 }, s.length+spinnerPatience)
	out := s.p.out.bytes()
	t.Duration, t.Raw = s.length, raw(out, s.p.errOut.bytes())
	if err != nil {
		return t, err
	}
	_, line, _ := strings.Cut(string(out), "\n")
	t.Compute, err = parseSpinner(line)
	return t, err
}

func parseSpinner(line string) (*record.Compute, error) {
	var r spinner.Result
	if err := json.Unmarshal([]byte(line), &r); err != nil {
		return nil, fmt.Errorf("dray spin: %w", err)
	}
	c := &record.Compute{}
	for _, t := range r.Threads {
		if t.Wall <= 0 || t.Time < 0 {
			return nil, fmt.Errorf("dray spin: an interval of %v with %v of CPU time", t.Wall, t.Time)
		}
		share := float64(t.Time) / float64(t.Wall)
		c.CPUs = append(c.CPUs, record.CPU{CPU: t.CPU, Share: &share, Longest: t.Longest})
	}
	return c, nil
}

// Stop ends the threads. An error means that they had ended before.
func (s *Spinner) Stop() error {
	if s.p.within(0) {
		return fmt.Errorf("dray spin ended too early (%v): %s", s.p.err, s.p.words())
	}
	s.p.kill()
	return nil
}

// Stall measures with oslat the longest interruption of a thread of ordinary priority that
// spins on each CPU, for length, rounded up to whole seconds.
func Stall(ctx context.Context, at Endpoint, cpus []int, length time.Duration) (record.Trial, error) {
	seconds := wholeSeconds(length)
	argv := []string{"oslat", "-c", cpulist.Format(cpus), "-C", strconv.Itoa(cpus[0]), "-D", strconv.Itoa(seconds)}
	t, out, err := latencyTool(ctx, at, record.QSpin, argv, StallTime(length))
	if err != nil {
		return t, err
	}
	t.Duration = time.Duration(seconds) * time.Second
	t.Compute, err = parseMaxima(oslatMaxima, out, cpus)
	return t, err
}

// OrdinaryWakeUp measures with cyclictest how late timers wake a thread of ordinary
// priority on each CPU, which does nothing else. cyclictest itself needs the right to
// real-time priority: see WakeUp.
func OrdinaryWakeUp(ctx context.Context, at Endpoint, cpus []int, length time.Duration) (record.Trial, error) {
	argv := []string{
		"cyclictest", "-q", "-m", "--policy=other", "-a", cpulist.Format(cpus), "-t", strconv.Itoa(len(cpus)),
		"-i", strconv.Itoa(int(wakeCycle.Microseconds())), "-d", "0", "-l", strconv.Itoa(max(1, int(length/wakeCycle))), "-h", strconv.Itoa(wakeBars),
	}
	t, out, err := latencyTool(ctx, at, record.QWakeup, argv, length)
	if err != nil {
		return t, err
	}
	if t.Latency, err = parseCyclictest(string(out)); err != nil {
		return t, err
	}
	t.Compute, err = parseMaxima(cyclictestMost, out, cpus)
	return t, err
}

// latencyTool runs a program of rt-tests to its end.
func latencyTool(ctx context.Context, at Endpoint, q record.Quantity, argv []string, length time.Duration) (record.Trial, []byte, error) {
	t := record.Trial{Quantity: q, Start: time.Now(), Marks: []string{}}
	path, err := exec.LookPath(argv[0])
	if err != nil {
		return t, nil, fmt.Errorf("the program %s is missing: apt-get install rt-tests", argv[0])
	}
	t.Instrument = record.Instrument{Name: argv[0], Client: argv, Server: []string{}, Placement: placement(at)}
	p, err := launch(at, append([]string{path}, argv[1:]...))
	if err != nil {
		return t, nil, err
	}
	defer p.kill()
	if err := p.endsWithin(ctx, argv[0], length+wakePatience); err != nil {
		return t, nil, err
	}
	out := p.out.bytes()
	t.Duration, t.Raw = time.Since(t.Start), raw(out, p.errOut.bytes())
	if p.err != nil {
		return t, nil, fmt.Errorf("%s: %w: %s%s", argv[0], p.err, p.words(), realtimeHint(p.words()))
	}
	return t, out, nil
}

// endsWithin waits for a program to end, and kills it if it does not.
func (p *program) endsWithin(ctx context.Context, name string, limit time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	select {
	case <-p.finished:
		return nil
	case <-ctx.Done():
		p.kill()
		return fmt.Errorf("%s did not end: %w", name, ctx.Err())
	}
}

// oslatMaxima is oslat's line of the longest interruption of each CPU, in µs.
var oslatMaxima = regexp.MustCompile(`(?m)^\s*Maximum:((?:\s+\d+)+) \(us\)`)

// parseMaxima reads a line with a figure in µs for each CPU, ascending.
func parseMaxima(line *regexp.Regexp, out []byte, cpus []int) (*record.Compute, error) {
	m := line.FindSubmatch(out)
	if m == nil {
		return nil, errors.New("the program printed no maximum")
	}
	fields := strings.Fields(string(m[1]))
	if len(fields) != len(cpus) {
		return nil, fmt.Errorf("the program printed %d maxima for %d CPUs", len(fields), len(cpus))
	}
	c := &record.Compute{}
	for i, cpu := range slices.Sorted(slices.Values(cpus)) {
		longest, err := time.ParseDuration(fields[i] + "us")
		if err != nil {
			return nil, fmt.Errorf("the program printed a maximum of %q", fields[i])
		}
		c.CPUs = append(c.CPUs, record.CPU{CPU: cpu, Longest: longest})
	}
	return c, nil
}

// StallTime is how long Stall takes.
func StallTime(length time.Duration) time.Duration {
	return time.Duration(wholeSeconds(length))*time.Second + spinWarmUp
}
