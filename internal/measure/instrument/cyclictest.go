// SPDX-License-Identifier: Apache-2.0

package instrument

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/drayage/dray/internal/result/record"
)

// wakeCycle is the time between two wake-ups, and wakeBars the range of
// cyclictest's histogram in µs.
const (
	wakeCycle = time.Millisecond
	wakeBars  = 10_000
)

// wakePatience is cyclictest's time in addition to the measurement: an emulated
// machine under load starts its threads slowly.
const wakePatience = 45 * time.Second

// WakeUp measures with cyclictest how late timers wake a real-time thread on each
// CPU, with stress-ng on all of them if stress is set. Both run as host root, in
// the endpoint's network namespace and control group, or in its virtual machine. A
// zero endpoint is the host itself. Real-time priority takes CAP_SYS_NICE, and, on
// a kernel with CONFIG_RT_GROUP_SCHED and cgroup v1, a real-time budget of the
// control group.
func WakeUp(ctx context.Context, at Endpoint, stress bool, length time.Duration) (t record.Trial, err error) {
	t = record.Trial{Quantity: record.QWakeup, Start: time.Now(), Marks: []string{}}
	path, err := exec.LookPath("cyclictest")
	if err != nil {
		return t, errors.New("the program cyclictest is missing: apt-get install rt-tests")
	}
	ctx, cancel := context.WithTimeout(ctx, length+wakePatience)
	defer cancel()
	if stress {
		stop, err := stressAll(at, length+2*wakePatience)
		if err != nil {
			return t, err
		}
		defer func() { err = errors.Join(err, stop()) }()
	}
	argv := []string{
		path, "-q", "-m", "-S", "-p", "95", "-i", strconv.Itoa(int(wakeCycle.Microseconds())),
		"-l", strconv.Itoa(int(length / wakeCycle)), "-h", strconv.Itoa(wakeBars),
	}
	t.Instrument = record.Instrument{Name: "cyclictest", Client: argv, Server: []string{}, Placement: "on the host"}
	if at.Name != "" {
		t.Instrument.Placement = placement(at)
	}
	p, err := launch(at, argv)
	if err != nil {
		return t, err
	}
	defer p.kill()
	select {
	case <-p.finished:
	case <-ctx.Done():
		p.kill()
		return t, fmt.Errorf("cyclictest did not end: %w", ctx.Err())
	}
	t.Duration, t.Raw = time.Since(t.Start), raw(p.out.bytes(), p.errOut.bytes())
	if p.err != nil {
		return t, fmt.Errorf("cyclictest: %w: %s%s", p.err, p.words(), realtimeHint(p.words()))
	}
	t.Latency, err = parseCyclictest(string(p.out.bytes()))
	return t, err
}

// realtimeHint explains how a thread can get real-time priority.
func realtimeHint(words string) string {
	text := strings.ToLower(words)
	if !strings.Contains(text, "sched") && !strings.Contains(text, "permitted") && !strings.Contains(text, "capabilit") {
		return ""
	}
	return "; it needs CAP_SYS_NICE, and on a kernel with CONFIG_RT_GROUP_SCHED a control group with real-time budget, cpu.rt_runtime_us (Debian's kernels have no such limit: `dray lab` runs one)"
}

// stressAll keeps every CPU busy until stop is called, which reports whether it did.
func stressAll(at Endpoint, most time.Duration) (stop func() error, err error) {
	load, err := startStress(at, most)
	if err != nil {
		return nil, err
	}
	return func() error {
		if load.within(0) {
			return fmt.Errorf("stress-ng ended before the measurement did: %v: %s", load.err, load.words())
		}
		load.kill()
		return nil
	}, nil
}

// startStress starts the stress program, which ends by itself after most, even if
// this process is killed.
func startStress(at Endpoint, most time.Duration) (*program, error) {
	path, err := exec.LookPath("stress-ng")
	if err != nil {
		return nil, errors.New("the program stress-ng is missing: apt-get install stress-ng")
	}
	// A time-out of 0 would disable it.
	return launch(at, []string{path, "--cpu", "0", "--temp-path", "/tmp", "--timeout", fmt.Sprintf("%ds", int(most.Seconds())+1)})
}

var (
	cyclictestBar  = regexp.MustCompile(`(?m)^(\d{6,})((?:[ \t]+\d+)+)$`)
	cyclictestMost = regexp.MustCompile(`(?m)^# Max Latencies:((?: \d+)+)`)
)

// parseCyclictest sums all threads' histograms: one line for each µs.
func parseCyclictest(out string) (*record.Latency, error) {
	h := record.NewHDR()
	for _, m := range cyclictestBar.FindAllStringSubmatch(out, -1) {
		micros, err := strconv.ParseInt(m[1], 10, 64)
		if err != nil {
			return nil, err
		}
		for _, field := range strings.Fields(m[2]) {
			n, err := strconv.ParseInt(field, 10, 64)
			if err != nil {
				return nil, err
			}
			if n > 0 {
				if err := h.RecordValues(max(1, micros*1000), n); err != nil {
					return nil, err
				}
			}
		}
	}
	// The maximum may lie beyond the histogram.
	m := cyclictestMost.FindStringSubmatch(out)
	if m == nil || h.TotalCount() == 0 {
		return nil, errors.New("cyclictest printed no histogram")
	}
	most := int64(0)
	for _, field := range strings.Fields(m[1]) {
		n, err := strconv.ParseInt(field, 10, 64)
		if err != nil || n > math.MaxInt64/1000 {
			return nil, fmt.Errorf("cyclictest printed a maximum of %s", field)
		}
		most = max(most, n)
	}
	if most >= wakeBars {
		if err := h.RecordValue(most * 1000); err != nil {
			return nil, err
		}
	}
	return &record.Latency{Histogram: record.FromHDR(h), Sent: uint64(h.TotalCount())}, nil
}
