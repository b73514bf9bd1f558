// SPDX-License-Identifier: Apache-2.0

package compare

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode"

	"github.com/drayage/dray/internal/result/record"
)

// goUnits are unit suffixes of Go's benchmark format, with factors to convert values.
// Times are in seconds, which benchstat prints with a prefix.
var goUnits = map[string]struct {
	suffix string
	factor float64
}{
	bitrate: {"-bit/s", 1}, packetRate: {"-pkt/s", 1}, perSecond: {"/s", 1}, nanosecond: {"-sec", 1e-9},
	lossRatio: {"-ratio", 1}, ringShare: {"-ratio", 1}, octets: {"-B", 1}, cores: {"", 1}, cycles: {"", 1},
	number: {"", 1}, holding: {"-ratio", 1}, watt: {"-W", 1}, joule: {"-J", 1},
}

// goUnit is the metric's unit in Go's benchmark format.
func (m metric) goUnit() (name string, factor float64) {
	words := strings.FieldsFunc(m.name, func(r rune) bool { return unicode.IsSpace(r) || strings.ContainsRune(",()/", r) })
	unit := goUnits[m.unit]
	return strings.Join(words, "-") + unit.suffix, unit.factor
}

// WriteBenchmarks writes runs in Go's benchmark format, a line for each trial, for
// benchstat. Several runs are distinguished by the key "run": `benchstat -col run
// FILE`. A single run has no such key, so that `benchstat A.txt B.txt` compares files.
// Machines are described in comments: as keys they would prevent the comparison.
func WriteBenchmarks(w io.Writer, runs ...*Run) error {
	var b strings.Builder
	for _, m := range metrics() {
		unit, _ := m.goUnit()
		better := "lower"
		if m.higher {
			better = "higher"
		}
		fmt.Fprintf(&b, "Unit %s better=%s\n", unit, better)
	}
	for _, r := range runs {
		fmt.Fprintf(&b, "\n# run %s of %s\n# kernel %s, CPU %s, dray %s\n", oneWord(r.ID), oneWord(r.Chain),
			oneWord(r.env.Kernel), oneWord(r.env.CPUModel), oneWord(r.env.Dray))
		if len(runs) > 1 {
			fmt.Fprintf(&b, "run: %s\n", oneWord(r.ID))
		}
		r.writeTrials(&b)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func (r *Run) writeTrials(b *strings.Builder) {
	order, sides := r.cells()
	arrange(order)
	for _, cell := range order {
		for _, t := range sides[cell].trials {
			if figures := goFigures(t); figures != "" {
				fmt.Fprintf(b, "%s 1%s\n", cell.goName(), figures)
			}
		}
	}
}

// goFigures are the value and unit of each of the trial's metrics.
func goFigures(t record.Trial) string {
	var b strings.Builder
	for _, m := range metrics() {
		if v := m.read(&side{trials: []record.Trial{t}}); v.n() > 0 {
			unit, factor := m.goUnit()
			fmt.Fprintf(&b, " %.6g %s", v.figures[0]*factor, unit)
		}
	}
	return b.String()
}

// goName is the benchmark's name, made of the cell's parts.
func (c Cell) goName() string {
	parts := []string{"Benchmark"}
	for _, word := range strings.Split(oneWord(string(c.Quantity)), "_") {
		if word != "" {
			parts[0] += strings.ToUpper(word[:1]) + word[1:]
		}
	}
	add := func(key, value string) {
		if value != "" {
			parts = append(parts, key+"="+strings.ReplaceAll(oneWord(value), "/", "_"))
		}
	}
	add("config", c.Config)
	add("link", c.Link)
	add("from", c.From)
	add("to", c.To)
	add("by", c.Instrument)
	add("load", c.Load)
	if c.Frame > 0 {
		add("frame", strconv.Itoa(c.Frame))
	}
	return strings.Join(parts, "/")
}

// oneWord makes text safe for a format of words and lines.
func oneWord(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) || !unicode.IsPrint(r) {
			return '_'
		}
		return r
	}, s)
}
