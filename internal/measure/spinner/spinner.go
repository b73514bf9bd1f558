// SPDX-License-Identifier: Apache-2.0

// Package spinner keeps CPUs busy, and measures how much of them it gets: the program
// `dray spin`.
package spinner

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"runtime"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/drayage/dray/internal/spec/cpulist"
)

// Ready is the first line of output: every thread spins.
const Ready = "ready"

// Result is the second line of output: what each thread got in its interval.
type Result struct {
	Threads []Thread `json:"threads"`
}

// Thread is the interval of one thread. Times are in ns.
type Thread struct {
	CPU  int           `json:"cpu"`
	Wall time.Duration `json:"wall"` // length of the interval
	Time time.Duration `json:"time"` // the thread's CPU time in it
	// Longest is the longest time between two readings of the clock, which take less than
	// a microsecond if nothing takes the CPU away.
	Longest time.Duration `json:"longest"`
}

// Argv are the arguments of the program: a thread on each CPU spins for at most most, and
// measures for length.
func Argv(cpus []int, length, most time.Duration) []string {
	return []string{"spin", "--cpus", cpulist.Format(cpus), "--for", length.String(), "--most", most.String()}
}

// Main runs the program with arguments as of Argv, without the first. The interval begins
// at the end of input. Afterwards the threads go on spinning until the program is killed:
// others that measure at the same time rely on it.
func Main(argv []string, in io.Reader, out io.Writer) error {
	flags := flag.NewFlagSet("spin", flag.ContinueOnError)
	flags.SetOutput(io.Discard) // the error text is sufficient
	list := flags.String("cpus", "", "CPUs to spin on")
	length := flags.Duration("for", time.Second, "length of the interval")
	most := flags.Duration("most", time.Minute, "when to end at the latest")
	if err := flags.Parse(argv); err != nil {
		return fmt.Errorf("spin: %w", err)
	}
	cpus, err := cpulist.Parse(*list)
	if err != nil || len(cpus) == 0 {
		return fmt.Errorf("spin: --cpus %q: %w", *list, errors.Join(err, errors.New("name CPUs, such as 2,4-5")))
	}
	// Neither may take time from the threads.
	debug.SetGCPercent(-1)
	runtime.GOMAXPROCS(len(cpus) + 1)
	s := &spinner{length: *length, ended: make(chan error, len(cpus))}
	return s.run(cpus, *most, in, out)
}

type spinner struct {
	length  time.Duration
	measure atomic.Bool // the interval may begin
	ended   chan error  // threads that could not begin
}

func (s *spinner) run(cpus []int, most time.Duration, in io.Reader, out io.Writer) error {
	result := Result{Threads: make([]Thread, len(cpus))}
	var spinning, measured sync.WaitGroup
	spinning.Add(len(cpus))
	measured.Add(len(cpus))
	for i, cpu := range cpus {
		result.Threads[i].CPU = cpu
		go s.thread(&result.Threads[i], spinning.Done, measured.Done)
	}
	spinning.Wait()
	select {
	case err := <-s.ended:
		return err
	default:
	}
	limit := time.AfterFunc(most, func() { os.Exit(1) })
	defer limit.Stop()
	fmt.Fprintln(out, Ready)
	if _, err := io.Copy(io.Discard, in); err != nil {
		return fmt.Errorf("spin: %w", err)
	}
	s.measure.Store(true)
	measured.Wait()
	if err := json.NewEncoder(out).Encode(result); err != nil {
		return fmt.Errorf("spin: %w", err)
	}
	time.Sleep(most)
	return nil
}

// thread spins for ever, and fills in t.
func (s *spinner) thread(t *Thread, spinning, measured func()) {
	runtime.LockOSThread()
	var set unix.CPUSet
	set.Set(t.CPU)
	if err := unix.SchedSetaffinity(0, &set); err != nil {
		s.ended <- fmt.Errorf("spin on CPU %d: %w", t.CPU, err)
		spinning()
		return
	}
	spinning()
	for !s.measure.Load() {
	}
	own, began := cpuTime(), time.Now()
	for last := time.Duration(0); last < s.length; {
		now := time.Since(began)
		t.Longest = max(t.Longest, now-last)
		last, t.Wall = now, now
	}
	t.Time = cpuTime() - own
	measured()
	for {
		_ = s.measure.Load()
	}
}

// cpuTime is the CPU time of the calling thread.
func cpuTime() time.Duration {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &ts); err != nil {
		return 0 // every kernel has this clock
	}
	return time.Duration(ts.Nano())
}
