// SPDX-License-Identifier: Apache-2.0

package microbench

import (
	"cmp"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/drayage/dray/internal/host"
)

// shownShares is how many functions per process a profile names.
const shownShares = 4

// explain finds the reasons for missed targets.
func (r *dpdkRows) explain() {
	for i := range sizes {
		r.explainRow(r.ways[i][wayDray], sizes[i])
		r.explainNative(i)
	}
	r.explainRow(r.ways[0][wayBound], sizes[0])
	r.explainTrip()
	r.explainRow(r.switches[0], 0)
	r.explainRow(r.forwards[1], 0)
}

// missed reports whether a row misses a target while its pair still works.
func (row dpdkRow) missed() bool { return !row.figure.Reached() && row.pair.why == "" }

// explainRow profiles a row's pair; testpmd is first set to size, if it has one.
func (r *dpdkRows) explainRow(row dpdkRow, size int) {
	if !row.missed() {
		return
	}
	if size > 0 && !r.late() && r.testpmdRate(row.pair, size) == 0 {
		return
	}
	row.figure.causes = r.profile(row.pair)
}

// explainTrip compares with a cache line's round trip: no driver is faster.
func (r *dpdkRows) explainTrip() {
	row := r.trips[wayDray]
	if !row.missed() {
		return
	}
	line, trip := r.line.Value(), row.figure.Value()
	lines := math.NaN()
	if line > 0 {
		lines = trip / line
	}
	text := fmt.Sprintf("a round trip of %.0f ns is %.1f of a cache line to and fro, which takes %.0f; "+
		"a frame takes two lines each way, one after the other", trip, lines, line)
	row.figure.causes = append([]string{text}, r.profile(row.pair)...)
}

// explainNative compares with the generator on a null port.
func (r *dpdkRows) explainNative(i int) {
	row := r.native[i]
	if !row.missed() {
		return
	}
	sends, receives := r.ceilings[i].figure.Value(), r.ceilings[len(sizes)+i].figure.Value()
	text := fmt.Sprintf("the generator stamps, sums up and judges each packet: without a link it sends %.1f M/s and receives %.1f; this is %.0f %% of the lesser",
		sends/1e6, receives/1e6, 100*row.figure.Value()/min(sends, receives))
	row.figure.causes = append([]string{text}, r.profile(row.pair)...)
}

// profile lists the functions that use most time in each process of a pair.
func (r *dpdkRows) profile(t *pair) []string {
	if r.late() {
		return []string{"no profile: no time was left"}
	}
	t.resume()
	var lines []string
	for _, p := range []struct {
		process *process
		name    string
	}{{t.sender, "the sender"}, {t.receiver, "the receiver"}, {t.between, "the function in the middle"}} {
		if !p.process.alive() {
			continue
		}
		if shares := r.shares(p.process); len(shares) > 0 {
			lines = append(lines, "time of "+p.name+": "+strings.Join(shares, ", "))
		}
	}
	t.pause()
	if lines == nil {
		return []string{"no profile: perf is missing (Debian: linux-perf), or not permitted"}
	}
	return lines
}

// shares profiles a process with perf. Its CPU clock event also works in virtual
// machines, which have no cycle counters.
func (r *dpdkRows) shares(p *process) []string {
	data := filepath.Join(r.dir, "perf.data")
	perf := func(args ...string) (string, error) {
		return host.Helper{Program: "perf", Args: args, Package: "linux-perf"}.Output(r.ctx)
	}
	if _, err := perf("record", "-q", "-e", "cpu-clock", "-F", "999", "-p", strconv.Itoa(p.innermost()), "-o", data, "--", "sleep", "0.5"); err != nil {
		return nil
	}
	report, err := perf("report", "-q", "--stdio", "--no-children", "-s", "symbol,dso", "-i", data)
	if err != nil {
		return nil
	}
	return largestShares(report)
}

// largestShares reads a perf report. A program without symbols counts as one function.
func largestShares(report string) []string {
	sums := map[string]float64{}
	for _, line := range strings.Split(report, "\n") {
		words := strings.Fields(line)
		// 12.34% [.] function library
		if len(words) < 4 || !strings.HasSuffix(words[0], "%") || !strings.HasPrefix(words[1], "[") {
			continue
		}
		name := words[3]
		if !strings.HasPrefix(words[2], "0x") {
			name = words[2] + " of " + name
		}
		sums[name] += leadingNumber(words[0])
	}
	type share struct {
		name    string
		percent float64
	}
	var all []share
	for name, percent := range sums {
		all = append(all, share{name, percent})
	}
	slices.SortFunc(all, func(a, b share) int {
		return cmp.Or(cmp.Compare(b.percent, a.percent), cmp.Compare(a.name, b.name))
	})
	var shown []string
	for _, s := range all[:min(shownShares, len(all))] {
		shown = append(shown, fmt.Sprintf("%.0f %% %s", s.percent, s.name))
	}
	return shown
}
