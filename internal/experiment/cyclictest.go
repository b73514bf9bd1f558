// SPDX-License-Identifier: Apache-2.0

package experiment

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/drayage/dray/internal/chain"
	"github.com/drayage/dray/internal/record"
)

// cycle is the time between two wake-ups, and histogram the µs that the
// histogram holds.
const (
	cycle     = time.Millisecond
	histogram = 10_000
)

// cyclictest measures how late timers wake a thread of the highest priority that
// this process may have, on each CPU; under stress-ng where the cell says so.
func cyclictest(ctx context.Context, c chain.Cell, length time.Duration) (t record.Trial, err error) {
	t = record.Trial{Quantity: record.QWakeup, Start: time.Now(), Marks: []string{}}
	ctx, cancel := context.WithTimeout(ctx, length+30*time.Second)
	defer cancel()
	if c.Stress {
		load := exec.CommandContext(ctx, "stress-ng", "--cpu", "0", "--timeout", fmt.Sprintf("%ds", int(length.Seconds())+20))
		load.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
		load.Cancel = func() error { return syscall.Kill(-load.Process.Pid, syscall.SIGKILL) }
		if err := load.Start(); err != nil {
			return t, err
		}
		defer func() {
			kill := syscall.Kill(-load.Process.Pid, syscall.SIGKILL)
			_ = load.Wait() // killed on purpose, or else:
			if load.ProcessState == nil || load.ProcessState.ExitCode() != -1 {
				kill = errors.Join(kill, fmt.Errorf("stress-ng ended before the measurement did: %v", load.ProcessState))
			}
			err = errors.Join(err, kill)
		}()
	}
	argv := []string{"-q", "-m", "-S", "-p", "95", "-i", strconv.Itoa(int(cycle.Microseconds())), "-l", strconv.Itoa(int(length / cycle)), "-h", strconv.Itoa(histogram)}
	cmd := exec.CommandContext(ctx, "cyclictest", argv...)
	cmd.Env = append(os.Environ(), "LC_ALL=C")
	out, err := cmd.CombinedOutput()
	t.Raw = string(out)
	t.Instrument = record.Instrument{Name: "cyclictest", Client: append([]string{"cyclictest"}, argv...), Server: []string{}, Placement: "on the host"}
	t.Duration = time.Since(t.Start)
	if err != nil {
		return t, fmt.Errorf("cyclictest: %w: %s", err, firstLine(out))
	}
	t.Latency, err = parseCyclictest(string(out))
	return t, err
}

func firstLine(out []byte) string {
	line, _, _ := strings.Cut(strings.TrimSpace(string(out)), "\n")
	return line
}

var (
	cyclictestBar  = regexp.MustCompile(`(?m)^(\d{6,})((?:[ \t]+\d+)+)$`)
	cyclictestMost = regexp.MustCompile(`(?m)^# Max Latencies:((?: \d+)+)`)
)

// parseCyclictest sums the histograms of all threads: one line for each µs.
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
	// The largest may lie beyond the histogram.
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
	if most >= histogram {
		if err := h.RecordValue(most * 1000); err != nil {
			return nil, err
		}
	}
	return &record.Latency{Histogram: record.FromHDR(h), Sent: uint64(h.TotalCount())}, nil
}
