// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/drayage/dray/internal/result/record"
	"github.com/drayage/dray/internal/result/report/document"
)

// benchOutput is the bench's machine-readable report.
type benchOutput struct {
	BenchRun
	Directory string      `json:"directory"`
	Warnings  []string    `json:"warnings"`
	Lines     []BenchLine `json:"lines"`
}

// Document is the report of a bench: figures, one table, and the method.
func (d *BenchData) Document() *document.Document {
	a := anchorsOf(d.Trials)
	legend := benchLegend(d.Trials, d.Lines)
	more := besides(d.Warnings, d.Unfinished)
	doc := &document.Document{
		Brand: "Drayage bench", Title: d.Run.Matrix.Name, Headline: d.headline(), Tone: document.Neutral, Banner: d.Unfinished,
		Facts: d.facts(), Records: recordsOf(d.Trials), Closing: closing(d.Dir, []string{"Next: `dray compare " + d.Dir + " OTHER` compares these rows with another run's."}),
		Data: benchOutput{BenchRun: d.Run, Directory: d.Dir, Warnings: append([]string{}, d.Warnings...), Lines: d.Lines},
	}
	if figures := append(d.rateFigures(a), d.delayFigures(a)...); len(figures) > 0 {
		doc.Sections = append(doc.Sections, document.Section{ID: "plots", Title: "Side by side", On: document.Page, Blocks: []document.Block{{Figures: figures}}})
	}
	if t := d.table(a); len(t.Rows) > 0 {
		doc.Sections = append(doc.Sections, document.Section{ID: "table", Title: "All figures", Blocks: []document.Block{{Table: t}, legendBlock(document.Page, legend)}})
	}
	if without := d.without(); len(without) > 0 {
		doc.Sections = append(doc.Sections, withoutSection(without))
	}
	doc.Sections = append(doc.Sections,
		document.Section{On: document.Terminal, Blocks: []document.Block{{Notes: append(d.summary(), more...)}}},
		legendSection(legend),
		document.Section{ID: "method", Title: "How it was measured", On: document.Page, Blocks: []document.Block{{Paragraphs: append(d.notes(), more...)}}},
		environmentSection(d.Trials, nil), sourceSection("matrix", "Matrix", MatrixFile, d.Matrix))
	return doc
}

// table is every row that has figures.
func (d *BenchData) table(a anchors) *document.Table {
	t := &document.Table{Label: "All figures"}
	columns := benchColumns(d.Run.Baseline)
	for _, c := range columns {
		t.Columns = append(t.Columns, c.Column)
	}
	for i := range d.Lines {
		l := &d.Lines[i]
		if l.state() != "" {
			continue
		}
		row := document.Row{Marks: l.marksOf(), Records: a.refs(l.Trials), Note: l.conditions()}
		for _, c := range columns {
			row.Cells = append(row.Cells, document.Cell{Text: c.cell(l)})
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

// benchColumn is one column of the table.
type benchColumn struct {
	document.Column
	cell func(l *BenchLine) string
}

func benchColumns(baseline string) []benchColumn {
	column, page, terminal := document.Column{}, document.Column{On: document.Page}, document.Column{On: document.Terminal}
	head := func(c document.Column, head, short string) document.Column {
		c.Head, c.Short = head, short
		return c
	}
	under := func(c document.Column, tail string) document.Column {
		c.Under, c.Tail = true, tail
		return c
	}
	moves := document.Column{Moves: true, Key: true, Text: true}
	key := document.Column{Key: true, Text: true}
	return []benchColumn{
		{head(key, "Transport", ""), func(l *BenchLine) string { return l.Config.Transport }},
		{under(head(key, "Ports", ""), ""), func(l *BenchLine) string { return l.Config.Face }},
		{head(moves, "Runtime", ""), func(l *BenchLine) string { return l.Config.Runtime }},
		{head(moves, "Frames", ""), func(l *BenchLine) string { return sizeWords(l.Config.Size) }},
		{head(moves, "Through", ""), func(l *BenchLine) string { return l.Config.VNF }},
		{head(moves, "Load", ""), func(l *BenchLine) string { return l.Load }},
		{head(column, "Rate", ""), func(l *BenchLine) string { return valueOr(l.Rate, ppsText) }},
		{under(head(column, "95 %", ""), ""), func(l *BenchLine) string { return orNone(intervalText(l.Rate)) }},
		{head(column, "Bits", ""), func(l *BenchLine) string { return valueOr(l.Bits, bpsText) }},
		{under(head(column, "Lost", ""), " lost"), func(l *BenchLine) string { return l.lossPercent() }},
		{document.Column{Head: "Latency at", Moves: true}, func(l *BenchLine) string { return l.LatencyLoad }},
		{head(column, "p50", ""), func(l *BenchLine) string { return l.atPercentile(50) }},
		{head(column, "p99", ""), func(l *BenchLine) string { return l.atPercentile(99) }},
		{head(column, "p99.9", ""), func(l *BenchLine) string { return l.atPercentile(99.9) }},
		{head(column, "max", ""), func(l *BenchLine) string { return l.longest() }},
		{head(column, "Cores", ""), func(l *BenchLine) string { return cost(l, func(c *BenchCost) *BenchValue { return c.Cores }, three) }},
		{under(head(page, "Idle", ""), " idle"), func(l *BenchLine) string {
			return cost(l, func(c *BenchCost) *BenchValue { return c.Idle }, func(v float64) string { return fmt.Sprintf("%.2g", math.Round(v*100)/100) })
		}},
		{head(column, "CPU", ""), func(l *BenchLine) string {
			return cost(l, func(c *BenchCost) *BenchValue { return c.Machine }, percentText)
		}},
		{head(column, "Cycles/packet", "cyc/pkt"), func(l *BenchLine) string { return cost(l, func(c *BenchCost) *BenchValue { return c.Cycles }, three) }},
		{head(column, "Memory", ""), func(l *BenchLine) string {
			return cost(l, func(c *BenchCost) *BenchValue { return c.Memory }, memoryText)
		}},
		{head(column, "Of limit", ""), func(l *BenchLine) string { return limitText(l.Limit) }},
		{document.Column{Head: "of " + baseline, On: document.Terminal}, func(l *BenchLine) string { return ratioText(l.Base) }},
		{head(page, "Rate of "+baseline, ""), func(l *BenchLine) string { return ratioPart(l.Base, 0) }},
		{under(page, ""), func(l *BenchLine) string { return ratioPart(l.Base, 1) }},
		{head(page, "p50 of "+baseline, ""), func(l *BenchLine) string { return ratioPart(l.LatencyBase, 0) }},
		{under(page, ""), func(l *BenchLine) string { return ratioPart(l.LatencyBase, 1) }},
		{head(terminal, "Privileges", ""), func(l *BenchLine) string { return l.Privileges }},
	}
}

// ratioPart is a ratio, or its interval.
func ratioPart(r *BenchRatio, part int) string {
	ratio, interval, _ := strings.Cut(strings.TrimSuffix(ratioText(r), ")"), " (")
	return []string{ratio, interval}[part]
}

// conditions are a row's measurement conditions.
func (l *BenchLine) conditions() string {
	privileges := l.Privileges
	if privileges == "" {
		privileges = "unknown"
	}
	parts := []string{"Privileges: " + privileges}
	if l.Isolation != "" {
		parts = append(parts, "isolation "+l.Isolation)
	}
	parts = append(parts, copiesText(l.Copies))
	if l.LatencyLimit != nil {
		parts = append(parts, "p50 is × "+three(l.LatencyLimit.Ratio)+" a cache line's trip")
	}
	return strings.Join(parts, "; ") + "."
}

// copiesText says how often a packet's payload is copied.
func copiesText(n int) string {
	switch n {
	case 0:
		return "no copy"
	case 1:
		return "1 copy"
	}
	return fmt.Sprintf("%d copies", n)
}

func orNone(s string) string {
	if s == "" {
		return document.None
	}
	return s
}

func cost(l *BenchLine, of func(*BenchCost) *BenchValue, format func(float64) string) string {
	if l.Cost == nil {
		return document.None
	}
	return valueOr(of(l.Cost), format)
}

// limitText is a share of the physical limit.
func limitText(r *BenchRatio) string {
	if r == nil {
		return document.None
	}
	return three(100*r.Ratio) + " %"
}

// without are the lines that have no figures, each reason once per configuration.
func (d *BenchData) without() []*BenchLine {
	var out []*BenchLine
	seen := map[string]bool{}
	for i := range d.Lines {
		l := &d.Lines[i]
		key := l.Config.String() + " " + l.state()
		if l.state() == "" || seen[key] {
			continue
		}
		seen[key] = true
		out = append(out, l)
	}
	return out
}

// withoutSection lists the rows that have no figures, with the reason.
func withoutSection(lines []*BenchLine) document.Section {
	t := &document.Table{Label: "Without figures", Columns: []document.Column{
		{Head: "Transport", Text: true}, {Head: "Ports", Text: true}, {Head: "Runtime", Text: true}, {Head: "Frames", Text: true}, {Head: "Through", Text: true},
		{Head: "Why there are no figures", Text: true},
	}}
	for _, l := range lines {
		t.Rows = append(t.Rows, document.Row{Cells: document.Text(l.Config.Transport, l.Config.Face, l.Config.Runtime, sizeWords(l.Config.Size), l.Config.VNF, document.Sentence(l.state()))})
	}
	return document.Section{ID: "without", Title: "Without figures", Blocks: []document.Block{{Table: t}}}
}

func (d *BenchData) facts() []document.Fact {
	fs := []document.Fact{{Name: "Run", Text: d.Run.ID}, {Name: "Started", Text: d.Run.Started.Format(timeFormat)}, {Name: "Took", Text: elapsed(d.Run.Took.Round(time.Second))},
		{Name: "Host", Text: d.Run.Host.Hostname}, {Name: "Rounds", Text: fmt.Sprintf("%d of %d", d.Run.Rounds, d.Run.Matrix.Repetitions)},
		{Name: "Records", Text: fmt.Sprint(len(d.Trials))}, {Name: "Seed", Text: fmt.Sprint(d.Run.Seed)}, {Name: "Baseline", Text: d.Run.Baseline}, {Name: "dray", Text: d.Run.Dray}}
	return slices.DeleteFunc(fs, func(f document.Fact) bool { return f.Text == "" })
}

// summary is the figures' basis, for a terminal.
func (d *BenchData) summary() []string {
	return []string{
		fmt.Sprintf("%d of %d rounds in random order, seed %d, took %s. Rates have two-sided 95 %% intervals over rounds; latency is one way, over all rounds together.",
			d.Run.Rounds, d.Run.Matrix.Repetitions, d.Run.Seed, elapsed(d.Run.Took.Round(time.Second))),
		budget(d.Trials),
		"OF LIMIT is the rate divided by the bare ring's; CORES is the CPU time of instruments, functions and switches; CYC/PKT is TSC ticks × cores, divided by packets.",
	}
}

// budget is the best that the machine and the generator could do.
func budget(trials []record.Trial) string {
	return fmt.Sprintf("The current physical limit, measured before each row: %s. The generator alone: %s.", limitsOf(trials), ceilingsOf(trials))
}

// notes explain the measurement.
func (d *BenchData) notes() []string {
	return []string{
		"In each round, every configuration was brought up, offered each load and taken down, in a new random order. Rates count received packets. Their intervals are two-sided 95 % over rounds, on logarithms (Student t).",
		"The generator writes and reads each packet's headers; the rest of a packet moves only if the transport copies it. A large frame costs a zero-copy transport little more than a small one.",
		"Latency is one way: sender and receiver stamp packets from one clock. Percentiles are over the samples of all rounds together; percentiles that need more samples are left out.",
		"The current physical limit, measured before each row: " + limitsOf(d.Trials) + ". “Of limit” is the rate divided by the bare ring's, pair by pair.",
		"The generator alone: " + ceilingsOf(d.Trials) + ". A rate above 80 % of the lower one (of both in turns, if one thread is both ends) is marked generator-bound: the generator may limit it, not the link.",
		"“Cores” is the CPU time of the chain's control group (instruments, functions and switches) while packets were sent. “CPU” is the share of the whole machine in use by all processes. “Idle” is the chain's CPU time without traffic. Cycles per packet are time stamp counter ticks × cores, divided by received packets.",
		"A ratio to the baseline is the geometric mean over pairs of one round, with a 95 % t interval on logarithms. If the interval includes 1, the two are indistinguishable.",
	}
}

// benchLegend explains all marks, including marks that only sums over trials have.
func benchLegend(trials []record.Trial, lines []BenchLine) []document.Fact {
	out := legendOf(trials)
	for _, m := range []string{record.MarkGeneratorBound, markNotNarrowed} {
		n := 0
		for _, l := range lines {
			if slices.Contains(l.Marks, m) {
				n++
			}
		}
		if n > 0 {
			out = append(out, document.Fact{Name: m, Mark: true, Text: fmt.Sprintf("%s (%s)", Meaning(m), countOf(n, "row"))})
		}
	}
	return out
}

// BenchPlan lists the rows of a run before it starts. A width of 0 means no limit.
func BenchPlan(w io.Writer, run *BenchRun, width int) error {
	t := &document.Table{Columns: []document.Column{
		{Head: "Transport"}, {Head: "Ports"}, {Head: "Runtime"}, {Head: "Frames"}, {Head: "Through"}, {Head: "Privileges"}, {Head: "State"},
	}}
	for _, r := range run.Rows {
		l := BenchLine{Skipped: r.Skipped, Fix: r.Fix}
		state := "to be measured"
		switch {
		case r.Skipped != "":
			state = l.state()
		case r.Untried:
			state += ", for the first time on this host"
		}
		t.Rows = append(t.Rows, document.Row{Cells: document.Text(r.Config.Transport, r.Config.Face, r.Config.Runtime, sizeWords(r.Config.Size), r.Config.VNF, orNone(r.Privileges), state)})
	}
	return document.Blocks(w, width, document.Block{Table: t})
}
