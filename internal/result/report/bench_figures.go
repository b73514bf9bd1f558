// SPDX-License-Identifier: Apache-2.0

package report

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/drayage/dray/internal/result/report/document"
	"github.com/drayage/dray/internal/result/report/plot"
	"github.com/drayage/dray/internal/result/verdict"
	"github.com/drayage/dray/internal/spec/matrix"
)

// label names a line in a plot.
func (d *BenchData) label(l *BenchLine) string {
	text := l.Config.Transport + ", " + l.Config.Face
	if len(d.Run.Matrix.Runtimes) > 1 {
		text += ", " + l.Config.Runtime
	}
	if l.Config.VNF != string(matrix.VNFDirect) {
		text += ", through " + l.Config.VNF
	}
	return text
}

// rateFigures has one plot for each frame size and load that is not a stated rate.
func (d *BenchData) rateFigures(a anchors) []document.Figure {
	return d.eachFigure(func(n int, size string, load matrix.Load) *document.Figure {
		lines := d.picked(func(l *BenchLine) bool {
			return l.Rate != nil && l.Load == load.String() && l.Config.Size == size && load.Search != ""
		})
		slices.SortStableFunc(lines, func(x, y *BenchLine) int { return -cmp.Compare(x.Rate.Mean, y.Rate.Mean) })
		return d.rateFigure(n, lines, sizeWords(size), load.String(), a)
	})
}

// eachFigure draws a figure for each frame size and load; draw returns nil for none. n
// counts the figures before.
func (d *BenchData) eachFigure(draw func(n int, size string, load matrix.Load) *document.Figure) []document.Figure {
	var out []document.Figure
	for _, size := range d.Run.Matrix.Sizes {
		for _, load := range d.Run.Matrix.Loads {
			if f := draw(len(out), size.String(), load); f != nil {
				out = append(out, *f)
			}
		}
	}
	return out
}

func (d *BenchData) rateFigure(n int, lines []*BenchLine, size, load string, a anchors) *document.Figure {
	if len(lines) == 0 {
		return nil
	}
	p := plot.Dots{ID: fmt.Sprintf("rates-%d", n), Title: "Packet rate at " + size + ", load " + load, Format: verdict.FormatPacketRate, Unit: "packets/s",
		Desc: "Mean packet rate of each row with its 95 % interval, on a logarithmic axis, with the bare ring"}
	var ids []string
	for _, l := range lines {
		p.Rows = append(p.Rows, plot.Row{Label: d.label(l), Text: ppsText(l.Rate.Mean), Low: l.Rate.Low, High: l.Rate.High,
			Dots: []plot.Dot{{Value: l.Rate.Mean, Tip: d.label(l) + ": " + ppsText(l.Rate.Mean) + ", 95 % " + orNone(intervalText(l.Rate))}}})
		ids = append(ids, l.Trials...)
	}
	if mean := d.ring(); mean > 0 {
		p.Limits = []plot.Limit{{Value: mean, Text: "bare ring " + ppsText(mean)}}
	}
	return &document.Figure{Title: p.Title, Plot: p, Note: "Mean rate received, with its 95 % interval over rounds. The axis is logarithmic if rates are far apart.", Records: a.refs(ids)}
}

// ring is the mean rate of the bare ring over the run.
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

// delayFigures has one plot for each frame size and latency load.
func (d *BenchData) delayFigures(a anchors) []document.Figure {
	return d.eachFigure(func(n int, size string, load matrix.Load) *document.Figure {
		seen := map[string]bool{}
		lines := d.picked(func(l *BenchLine) bool {
			ok := l.Samples > 0 && l.LatencyLoad == load.String() && l.Config.Size == size && !seen[l.Config.String()]
			seen[l.Config.String()] = seen[l.Config.String()] || ok
			return ok
		})
		slices.SortStableFunc(lines, func(x, y *BenchLine) int {
			return cmp.Compare(float64(x.Latency[0].Value), float64(y.Latency[0].Value))
		})
		return d.delayFigure(n, lines, sizeWords(size), load.String(), a)
	})
}

func (d *BenchData) delayFigure(n int, lines []*BenchLine, size, load string, a anchors) *document.Figure {
	if len(lines) == 0 {
		return nil
	}
	p := plot.Dots{ID: fmt.Sprintf("delays-%d", n), Title: "One-way latency at " + size + ", load " + load, Format: verdict.FormatDuration, Unit: "ns",
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
	return &document.Figure{Title: p.Title, Plot: p, Note: "Samples of all rounds together; the figure next to the name is the median.", Records: a.refs(ids)}
}
