// SPDX-License-Identifier: Apache-2.0

package broker_test

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/drayage/dray/internal/link/broker"
	"github.com/drayage/dray/internal/measure/microbench"
	"github.com/drayage/dray/test/testenv"
)

// idle is the cost of links without traffic.
type idle struct {
	add, attach  time.Duration // of all links
	cpu          time.Duration // of the broker, in one second
	memory       uint64        // of one link: data and telemetry, bytes
	resident     int64         // of the broker per link, bytes
	fds, threads int           // of the broker
}

// usage reads the resource usage of a process.
func usage(t testing.TB, pid int) (cpu time.Duration, resident int64, fds, threads int) {
	t.Helper()
	dir := "/proc/" + strconv.Itoa(pid)
	stat, err1 := os.ReadFile(dir + "/stat")
	statm, err2 := os.ReadFile(dir + "/statm")
	entries, err3 := os.ReadDir(dir + "/fd")
	if err1 != nil || err2 != nil || err3 != nil {
		t.Fatal(err1, err2, err3)
	}
	_, after, _ := strings.Cut(string(stat), ") ")
	fields := strings.Fields(after) // from the state on, field 3 of proc(5)
	number := func(s string) int64 {
		n, err := strconv.ParseInt(s, 10, 64)
		testenv.Must(t, err)
		return n
	}
	const tick = 10 * time.Millisecond // USER_HZ is 100 on all supported platforms
	ticks := number(fields[11]) + number(fields[12])
	pages := number(strings.Fields(string(statm))[1])
	return time.Duration(ticks) * tick, pages * int64(os.Getpagesize()), len(entries), int(number(fields[17]))
}

// idleLinks creates that many links on plain pages, joins both ends of each,
// and leaves them idle.
func idleLinks(t testing.TB, links int) idle {
	s := newFixture(t)
	c, b := s.spawn()
	_, before, _, _ := usage(t, b.Process.Pid)
	var r idle
	var all []broker.Link
	for i := range links {
		l := s.link(fmt.Sprintf("p%d", i))
		l.Pages, l.Slots = broker.PagesPlain, 0
		all = append(all, l)
	}
	start := time.Now()
	for _, l := range all {
		s.add(c, l)
	}
	r.add = time.Since(start)
	start = time.Now()
	var ends []*raw
	for _, l := range all {
		x, y, _, _ := s.joinRaw(l)
		ends = append(ends, x, y)
	}
	r.attach = time.Since(start)
	until(t, "all active", func() bool {
		status, err := c.Status(context.Background())
		testenv.Must(t, err)
		r.memory = status[0].Bytes
		active := 0
		for _, l := range status {
			if l.State == broker.StateActive && l.Pages == "plain" {
				active++
			}
		}
		return active == links
	})
	from, _, _, _ := usage(t, b.Process.Pid)
	time.Sleep(time.Second)
	cpu, resident, fds, threads := usage(t, b.Process.Pid)
	r.cpu, r.resident, r.fds, r.threads = cpu-from, (resident-before)/int64(links), fds, threads
	for _, l := range all {
		testenv.Must(t, c.Remove(context.Background(), l.Name))
	}
	for _, e := range ends {
		e.hangUp()
	}
	// A connection's descriptor closes slightly after it.
	until(t, "without the links' descriptors", func() bool {
		_, _, left, _ := usage(t, b.Process.Pid)
		return left <= 40
	})
	return r
}

func (r idle) String() string {
	return fmt.Sprintf("add %v, attach %v, broker: %v CPU in 1 s, %d B resident per link, %d descriptors, %d threads; memory %d B per link",
		r.add, r.attach, r.cpu, r.resident, r.fds, r.threads, r.memory)
}

func TestIdleLinks(t *testing.T) {
	const links = 100
	r := idleLinks(t, links)
	t.Log(r)
	if r.cpu > 500*time.Millisecond {
		t.Errorf("the broker of %d idle links uses %v in a second", links, r.cpu)
	}
	if r.fds > 12*links || r.threads > 64 {
		t.Errorf("the broker of %d links has %d descriptors and %d threads", links, r.fds, r.threads)
	}
}

// benchEnv names a file of results, as `make bench` writes it;
// BenchmarkIdleLinks adds its own.
const benchEnv = "DRAY_BENCH_JSON"

// BenchmarkIdleLinks measures the cost of 1,000 links without traffic.
func BenchmarkIdleLinks(b *testing.B) {
	const links, rounds = 1000, 3
	var all []idle
	for range b.N {
		for len(all) < rounds {
			all = append(all, idleLinks(b, links))
			b.Log(all[len(all)-1])
		}
	}
	var figures []microbench.Entry
	for _, m := range []struct {
		name, unit string
		of         func(idle) float64
	}{
		{"add", "us/link", func(r idle) float64 { return r.add.Seconds() * 1e6 / links }},
		{"attach both ends", "us/link", func(r idle) float64 { return r.attach.Seconds() * 1e6 / links }},
		{"memory", "B/link", func(r idle) float64 { return float64(r.memory) }},
		{"broker, resident", "B/link", func(r idle) float64 { return float64(r.resident) }},
		{"broker, CPU", "%", func(r idle) float64 { return r.cpu.Seconds() * 100 }},
		{"broker, open files", "fds", func(r idle) float64 { return float64(r.fds) }},
	} {
		var values []float64
		for _, r := range all {
			values = append(values, m.of(r))
		}
		slices.Sort(values)
		median := values[rounds/2]
		figures = append(figures, microbench.Entry{Group: "1,000 idle links on plain pages", Name: m.name, Unit: m.unit, Value: &median,
			Low: values[0], High: values[rounds-1], Samples: rounds, Peers: []microbench.RatioEntry{}, Marks: "interval: least and most"})
		b.ReportMetric(median, strings.NewReplacer(" ", "-", ",", "").Replace(m.name)+"-"+m.unit)
	}
	if path := os.Getenv(benchEnv); path != "" {
		if err := microbench.Merge(path, figures); err != nil {
			b.Fatal(err)
		}
	}
}
