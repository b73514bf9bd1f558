// SPDX-License-Identifier: Apache-2.0

package report

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/drayage/dray/internal/result/record"
	"github.com/drayage/dray/internal/result/report/plot"
	"github.com/drayage/dray/internal/result/verdict"
	"github.com/drayage/dray/internal/spec/chain"
)

//go:embed bench_page.html
var benchPageText string

//go:embed bench_style.css
var benchStyleText string

var benchTemplate = parsePage(benchPageText)

// benchView is what the page shows, in the order in which it shows it.
type benchView struct {
	Style    template.CSS
	Name     string
	Headline string
	Facts    []fact
	Warnings []string
	Rates    []*figure
	Delays   []*figure
	Common   string
	Columns  []string // heads of the columns that can move, as far as they have not
	Baseline string
	Width    int // of the table, in columns
	Rows     []benchRowView
	Without  []benchWithout
	Marks    []fact
	Notes    []string
	Machine  []fact
	Matrix   string
	Records  []recordView
}

// fixedColumns is the number of columns of the page's table that never move.
const fixedColumns = 14

type benchRowView struct {
	Transport string
	Moving    []string // cells of Columns
	Face      string
	Rate      string
	Interval  string
	Bits      string
	Lost      string
	P50       string
	P99       string
	P999      string
	Longest   string
	Cores     string
	Machine   string
	Idle      string
	Cycles    string
	Memory    string
	Limit     string
	Base      benchRatioView
	LatBase   benchRatioView
	Privilege string
	Isolation string
	Copies    string
	Line      string // the median by a cache line's way; empty: unknown
	Marks     []string
	Records   []ref
}

// benchRatioView is a ratio and, below it, its interval.
type benchRatioView struct{ Text, Interval string }

func ratioView(r *BenchRatio) benchRatioView {
	text, interval, _ := strings.Cut(strings.TrimSuffix(ratioText(r), ")"), " (")
	return benchRatioView{text, interval}
}

type benchWithout struct {
	Transport, Detail, Reason string
}

// HTML writes the page: it needs no network and no scripts.
func (d *BenchData) HTML(w io.Writer) error {
	v := d.view()
	v.Style = template.CSS(styleText + benchStyleText)
	return writePage(w, benchTemplate, v)
}

func (d *BenchData) view() benchView {
	a := anchors{}
	for i, t := range d.Trials {
		a[t.ID] = i + 1
	}
	moving, common := d.split(benchColumns(d.Run.Baseline))
	moving = slices.DeleteFunc(moving, func(c benchColumn) bool { return !c.moves })
	asRun := &Data{Dir: d.Dir, Trials: d.Trials} // its views of records and machine are of records alone
	v := benchView{
		Name: d.Run.Matrix.Name, Headline: d.headline(), Facts: d.facts(), Warnings: d.Warnings,
		Rates: d.rateFigures(a), Delays: d.delayFigures(a), Common: strings.Join(common, " · "), Baseline: d.Run.Baseline,
		Marks: benchMarks(asRun, d.Lines), Notes: d.notes(), Machine: asRun.machine(), Matrix: d.Matrix, Records: asRun.recordViews(),
	}
	for _, c := range moving {
		v.Columns = append(v.Columns, capital(strings.ToLower(c.head)))
	}
	v.Width = fixedColumns + len(v.Columns)
	for i := range d.Lines {
		l := &d.Lines[i]
		if l.state() == "" {
			v.Rows = append(v.Rows, l.view(moving, a))
		}
	}
	for _, l := range d.without() {
		v.Without = append(v.Without, benchWithout{l.Config.Transport, l.detail(), l.state()})
	}
	return v
}

func capital(s string) string { return strings.TrimSuffix(sentence(s), ".") }

// detail is what tells a row from others of its transport.
func (l *BenchLine) detail() string {
	var parts []string
	for _, s := range []string{l.Config.Face, l.Config.Runtime, sizeWords(l.Config.Size), l.Config.VNF} {
		if s != noFigure && s != string(chain.VNFDirect) {
			parts = append(parts, s)
		}
	}
	return strings.Join(parts, ", ")
}

func (l *BenchLine) view(moving []benchColumn, a anchors) benchRowView {
	r := benchRowView{
		Transport: l.Config.Transport, Face: l.Config.Face, Rate: valueOr(l.Rate, ppsText), Interval: intervalText(l.Rate), Bits: valueOr(l.Bits, bpsText),
		Lost: l.lossPercent(), P50: l.atPercentile(50), P99: l.atPercentile(99), P999: l.atPercentile(99.9), Longest: l.longest(),
		Cores:   cost(l, func(c *BenchCost) *BenchValue { return c.Cores }, three),
		Machine: cost(l, func(c *BenchCost) *BenchValue { return c.Machine }, percentText),
		Idle:    cost(l, func(c *BenchCost) *BenchValue { return c.Idle }, func(v float64) string { return fmt.Sprintf("%.2g", math.Round(v*100)/100) }),
		Cycles:  cost(l, func(c *BenchCost) *BenchValue { return c.Cycles }, three),
		Memory:  cost(l, func(c *BenchCost) *BenchValue { return c.Memory }, memoryText),
		Limit:   limitText(l.Limit), Base: ratioView(l.Base), LatBase: ratioView(l.LatencyBase),
		Privilege: l.Privileges, Isolation: l.Isolation, Copies: copiesText(l.Copies), Marks: l.marksOf(), Records: a.refs(l.Trials),
	}
	if l.LatencyLimit != nil {
		r.Line = "× " + three(l.LatencyLimit.Ratio)
	}
	for _, c := range moving {
		r.Moving = append(r.Moving, c.cell(l))
	}
	return r
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

func (d *BenchData) facts() []fact {
	fs := []fact{{"Run", d.Run.ID}, {"Started", d.Run.Started.Format("2 January 2006, 15:04:05 MST")}, {"Took", elapsed(d.Run.Took.Round(time.Second))},
		{"Host", d.Run.Host.Hostname}, {"Rounds", fmt.Sprintf("%d of %d", d.Run.Rounds, d.Run.Matrix.Repetitions)},
		{"Records", fmt.Sprint(len(d.Trials))}, {"Seed", fmt.Sprint(d.Run.Seed)}, {"Baseline", d.Run.Baseline}, {"dray", d.Run.Dray}}
	return slices.DeleteFunc(fs, func(f fact) bool { return f.Text == "" })
}

// notes say how the figures came about.
func (d *BenchData) notes() []string {
	return []string{
		"Each configuration was brought up, offered each load, and taken down, once a round, in an order drawn anew for each round. Rates are what arrived; their intervals are two-sided 95 % over rounds (Student t).",
		"The generator writes and reads each packet's headers; the rest of a packet moves only where the transport copies it. So a large frame costs a transport that copies nothing hardly more than a small one.",
		"Latency is one way, from time stamps in the packets that sender and receiver read from one clock, of the samples of all rounds together. A percentile that the samples do not support is left out.",
		"The limit of the moment, measured before each row: " + limitsOf(d.Trials) + ". “Of limit” is the rate by that of the bare ring, in the mean of pairs.",
		"The generator alone: " + ceilingsOf(d.Trials) + ". A rate over 80 % of the lesser is marked generator-bound: it is rather the generator's than the link's.",
		"Cores is the CPU time of the chain's control group (instruments, functions and switches) while packets were sent; CPU is the share of the whole machine that was in use, by everyone; at rest is the chain without traffic; cycles per packet are ticks of the time stamp counter × cores by packets that arrived.",
		"A ratio to the baseline is the geometric mean over pairs of one round, with a 95 % t interval on logarithms. Where that has 1 in it, the two are indistinguishable.",
	}
}

// benchMarks lists the doubts, also those that only the sums show.
func benchMarks(asRun *Data, lines []BenchLine) []fact {
	out := asRun.marks()
	n := 0
	for _, l := range lines {
		if slices.Contains(l.Marks, record.MarkGeneratorBound) {
			n++
		}
	}
	if n > 0 {
		out = append(out, fact{record.MarkGeneratorBound, fmt.Sprintf("over 80 %% of what the generator reaches without a port: the link may do more (%s)", countOf(n, "row"))})
	}
	return out
}

// label names a line in a plot.
func (d *BenchData) label(l *BenchLine) string {
	text := l.Config.Transport + ", " + l.Config.Face
	if len(d.Run.Matrix.Runtimes) > 1 {
		text += ", " + l.Config.Runtime
	}
	if l.Config.VNF != string(chain.VNFDirect) {
		text += ", through " + l.Config.VNF
	}
	return text
}

// rateFigures has one plot for each size of frame and load that is no stated rate.
func (d *BenchData) rateFigures(a anchors) []*figure {
	var out []*figure
	for _, size := range d.Run.Matrix.Sizes {
		for _, load := range d.Run.Matrix.Loads {
			lines := d.picked(func(l *BenchLine) bool {
				return l.Rate != nil && l.Load == load.String() && l.Config.Size == size.String() && load.Search != ""
			})
			slices.SortStableFunc(lines, func(x, y *BenchLine) int { return -compareFloats(x.Rate.Mean, y.Rate.Mean) })
			if f := d.rateFigure(len(out), lines, sizeWords(size.String()), load.String(), a); f != nil {
				out = append(out, f)
			}
		}
	}
	return out
}

func compareFloats(x, y float64) int {
	switch {
	case x < y:
		return -1
	case x > y:
		return 1
	}
	return 0
}

func (d *BenchData) rateFigure(n int, lines []*BenchLine, size, load string, a anchors) *figure {
	if len(lines) == 0 {
		return nil
	}
	p := plot.Dots{ID: fmt.Sprintf("rates-%d", n), Title: "Packet rate at " + size + ", load " + load, Format: verdict.FormatPacketRate,
		Desc: "Mean packet rate of each row with its 95 % interval, on a logarithmic axis, beside the bare ring"}
	var ids []string
	for _, l := range lines {
		p.Rows = append(p.Rows, plot.Row{Label: d.label(l), Text: ppsText(l.Rate.Mean), Low: l.Rate.Low, High: l.Rate.High,
			Dots: []plot.Dot{{Value: l.Rate.Mean, Tip: d.label(l) + ": " + ppsText(l.Rate.Mean) + ", 95 % " + orNone(intervalText(l.Rate))}}})
		ids = append(ids, l.Trials...)
	}
	if mean := d.ring(); mean > 0 {
		p.Limits = []plot.Limit{{Value: mean, Text: "bare ring " + ppsText(mean)}}
	}
	return &figure{Title: p.Title, Plot: p.SVG(), Note: "Mean of what arrived, with the 95 % interval over rounds. Logarithmic where rates are far apart.", Records: a.refs(ids)}
}

// ring is the rate of the bare ring in the mean over the run.
func (d *BenchData) ring() float64 {
	sum, n := 0.0, 0
	for _, t := range d.Trials {
		if t.Bench != nil && t.Bench.Limit != nil {
			sum, n = sum+t.Bench.Limit.Ring, n+1
		}
	}
	return sum / float64(max(1, n))
}

func (d *BenchData) picked(want func(*BenchLine) bool) []*BenchLine {
	var out []*BenchLine
	for i := range d.Lines {
		if want(&d.Lines[i]) {
			out = append(out, &d.Lines[i])
		}
	}
	return out
}

// delayFigures has one plot for each size of frame and load that latency is of.
func (d *BenchData) delayFigures(a anchors) []*figure {
	var out []*figure
	for _, size := range d.Run.Matrix.Sizes {
		for _, load := range d.Run.Matrix.Loads {
			seen := map[string]bool{}
			lines := d.picked(func(l *BenchLine) bool {
				ok := l.Samples > 0 && l.LatencyLoad == load.String() && l.Config.Size == size.String() && !seen[l.Config.String()]
				seen[l.Config.String()] = seen[l.Config.String()] || ok
				return ok
			})
			slices.SortStableFunc(lines, func(x, y *BenchLine) int {
				return compareFloats(float64(x.Latency[0].Value), float64(y.Latency[0].Value))
			})
			if f := d.delayFigure(len(out), lines, sizeWords(size.String()), load.String(), a); f != nil {
				out = append(out, f)
			}
		}
	}
	return out
}

func (d *BenchData) delayFigure(n int, lines []*BenchLine, size, load string, a anchors) *figure {
	if len(lines) == 0 {
		return nil
	}
	p := plot.Dots{ID: fmt.Sprintf("delays-%d", n), Title: "One-way latency at " + size + ", load " + load, Format: verdict.FormatDuration,
		Desc: "Percentiles of one-way latency of each row, on a logarithmic axis", Legend: []string{"p50", "p99", "p99.9", "max"}}
	var ids []string
	for _, l := range lines {
		row := plot.Row{Label: d.label(l), Text: l.atPercentile(50)}
		for kind, percentile := range []float64{50, 99, 99.9} {
			for _, q := range l.Latency {
				if q.Percentile == percentile && q.Refused == "" {
					row.Dots = append(row.Dots, plot.Dot{Value: float64(q.Value), Kind: kind, Tip: fmt.Sprintf("%s: p%g %s", d.label(l), percentile, quantileText(q.Quantile))})
				}
			}
		}
		row.Dots = append(row.Dots, plot.Dot{Value: float64(l.Longest), Kind: 3, Tip: d.label(l) + ": max " + l.longest()})
		p.Rows = append(p.Rows, row)
		ids = append(ids, l.Trials...)
	}
	return &figure{Title: p.Title, Plot: p.SVG(), Note: "Of the samples of all rounds together; the figure beside the name is the median.", Records: a.refs(ids)}
}
