// SPDX-License-Identifier: Apache-2.0

package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/drayage/dray/internal/result/record"
	"github.com/drayage/dray/internal/result/report/document"
	"github.com/drayage/dray/internal/result/report/plot"
	"github.com/drayage/dray/internal/result/stats"
	"github.com/drayage/dray/internal/result/verdict"
	"github.com/drayage/dray/internal/spec/experiment"
)

// figures are the plots of an experiment; number makes their ids unique on the page.
func (d *ExperimentsData) figures(number int, e *experiment.Experiment, lines []ExperimentLine, a anchors) []document.Figure {
	id := fmt.Sprintf("figure-%d", number)
	var out []document.Figure
	if f := d.offeredFigure(id+"-offered", e, a); f != nil {
		out = append(out, *f)
	}
	out = append(out, d.wakeupFigures(id+"-wakeup", e, lines, a)...)
	return append(out, publishedFigures(id+"-published", e, lines, a)...)
}

// kindOf is a suffix for a plot name if the figure is not the host's own.
func kindOf(marks []string) string {
	var kinds []string
	for _, m := range []string{record.MarkEmulated, record.MarkLab, record.MarkSimulatedHosts} {
		if slices.Contains(marks, m) {
			kinds = append(kinds, m)
		}
	}
	if len(kinds) == 0 {
		return ""
	}
	return " (" + strings.Join(kinds, ", ") + ")"
}

// leastLoads is the fewest loads of a sweep.
const leastLoads = 3

// offered is a sweep: one configuration at several loads.
type offered struct {
	cell   experiment.Cell // without its load
	stated int             // loads that are rates
	points []plot.XY
	marks  []string
	ids    []string
}

// offeredFigure plots received against sent rates, for each configuration with several
// rates; nil: none was measured.
func (d *ExperimentsData) offeredFigure(id string, e *experiment.Experiment, a anchors) *document.Figure {
	p := plot.Lines{ID: id, Title: "Forwarded against offered rate", XName: "really sent", YName: "received", Equal: "everything sent", Format: verdict.FormatPacketRate, Unit: "packets/s",
		Desc: "Mean received packet rate against the mean rate the sender reached, one line for each configuration"}
	var ids []string
	sweeps := slices.DeleteFunc(d.sweeps(e, a), func(o *offered) bool { return o.stated < leastLoads || len(o.points) == 0 })
	for _, o := range sweeps {
		p.Series = append(p.Series, plot.Series{Name: o.name(sweeps) + kindOf(o.marks), Points: o.points})
		ids = append(ids, o.ids...)
	}
	if len(p.Series) == 0 {
		return nil
	}
	return &document.Figure{Title: p.Title, Plot: p, Records: a.refs(ids),
		Note: "Means over rounds. A dot marks the rate really sent. If that is over 5 % off the requested load, a cross marks the requested load."}
}

// name distinguishes a sweep within its figure.
func (o *offered) name(all []*offered) string {
	for _, other := range all {
		if other != o && other.cell.Transport == o.cell.Transport {
			return strings.TrimPrefix(o.cell.String(), string(o.cell.Tool)+"/")
		}
	}
	return o.cell.Transport
}

func (d *ExperimentsData) sweeps(e *experiment.Experiment, a anchors) []*offered {
	var out []*offered
	seen := map[string]bool{}
	for _, r := range e.Rows {
		if r.Cell.Tool != experiment.ToolFrames || r.NotRun != "" || seen[r.Cell.String()] {
			continue
		}
		seen[r.Cell.String()] = true
		bare := r.Cell
		bare.Load = ""
		at := slices.IndexFunc(out, func(o *offered) bool { return o.cell == bare })
		if at < 0 {
			at, out = len(out), append(out, &offered{cell: bare})
		}
		if load := r.Cell.Offered(); load.PacketRate > 0 || load.Bitrate > 0 {
			out[at].stated++
		}
		d.point(out[at], r, a)
	}
	for _, o := range out {
		slices.SortStableFunc(o.points, func(a, b plot.XY) int { return cmp.Compare(a.X, b.X) })
	}
	return out
}

// point adds the result of one load, as a mean over its trials.
func (d *ExperimentsData) point(o *offered, r experiment.Row, a anchors) {
	var sent, received, asked, n float64
	var marks []string
	first := ""
	for _, t := range d.of(r.Cell) {
		if _, failed := valueOf("packet_rate", t); failed != "" || t.Delivery == nil {
			continue
		}
		if first == "" {
			first = t.ID
		}
		sent, received, asked, n = sent+float64(t.Delivery.SentRate), received+float64(t.Delivery.PacketRate), asked+float64(t.Delivery.OfferedRate), n+1
		marks, o.ids = append(marks, t.Marks...), append(o.ids, t.ID)
	}
	if n == 0 {
		return
	}
	xy := plot.XY{X: sent / n, Y: received / n, Href: a.href(first)}
	xy.Tip = fmt.Sprintf("%s: %s sent, %s received", r.Title, ppsText(xy.X), ppsText(xy.Y))
	if slices.Contains(marks, record.MarkLoadMissed) {
		xy.Wanted = asked / n
		xy.Tip += ", " + ppsText(xy.Wanted) + " requested"
	}
	o.points, o.marks = append(o.points, xy), append(o.marks, marks...)
}

// mostCurves is how many percentile curves are distinguishable.
const mostCurves = 4

// wakeup is a measured row of wake-up times.
type wakeup struct {
	row    experiment.Row
	line   *ExperimentLine
	points []plot.Point
}

// wakeupFigures plot wake-up latency against percentiles, all on one scale: one figure
// per kernel, or per kernel and load if there are many rows.
func (d *ExperimentsData) wakeupFigures(id string, e *experiment.Experiment, lines []ExperimentLine, a anchors) []document.Figure {
	var kernels [][]wakeup
	for i, r := range e.Rows {
		l := &lines[i]
		if r.Figure != "wakeup_max" || l.Measured == nil {
			continue
		}
		w := wakeup{row: r, line: l}
		if dist := d.merged(r); dist != nil {
			w.points = points(dist)
		}
		if len(w.points) == 0 {
			continue
		}
		at := slices.IndexFunc(kernels, func(ws []wakeup) bool { return ws[0].row.Cell.Kernel == r.Cell.Kernel })
		if at < 0 {
			kernels = append(kernels, []wakeup{w})
			continue
		}
		kernels[at] = append(kernels[at], w)
	}
	var plots []plot.Percentiles
	var ids [][]string
	for _, group := range wakeupGroups(kernels) {
		p, of := wakeupPlot(fmt.Sprintf("%s-%d", id, len(plots)), group, a)
		plots, ids = append(plots, p), append(ids, of)
	}
	plot.Align(plots)
	var out []document.Figure
	for i, p := range plots {
		out = append(out, document.Figure{Title: p.Title, Plot: p, Records: a.refs(ids[i]),
			Note: "How late a timer woke the thread, all rounds together. A curve ends where fewer than ten samples remain beyond it; its name gives the largest."})
	}
	return out
}

// merged is the distribution of all trials that count for a row; nil: none has one.
func (d *ExperimentsData) merged(r experiment.Row) *stats.Dist {
	var dists []*stats.Dist
	for _, t := range d.of(r.Cell) {
		if _, failed := valueOf(r.Figure, t); failed != "" || t.Latency == nil {
			continue
		}
		if dist, err := stats.NewDist(t.Latency.Histogram, t.Latency.Lost, 0); err == nil {
			dists = append(dists, dist)
		}
	}
	if len(dists) == 0 {
		return nil
	}
	return stats.Pool(dists...)
}

// wakeupGroups splits rows into groups that fit one plot each.
func wakeupGroups(kernels [][]wakeup) [][]wakeup {
	var out [][]wakeup
	for _, ws := range kernels {
		groups := [][]wakeup{ws}
		if len(ws) > mostCurves {
			groups = make([][]wakeup, 2)
			for _, w := range ws {
				at := 0
				if w.row.Cell.Stress {
					at = 1
				}
				groups[at] = append(groups[at], w)
			}
		}
		for _, g := range groups {
			out = slices.AppendSeq(out, slices.Chunk(g, mostCurves))
		}
	}
	return out
}

func wakeupPlot(id string, ws []wakeup, a anchors) (plot.Percentiles, []string) {
	var titles []string
	for _, w := range ws {
		titles = append(titles, strings.TrimSuffix(w.row.Title, ": maximum"))
	}
	common, names := apart(titles)
	p := plot.Percentiles{ID: id, Title: "Wake-up latency: " + common, Format: verdict.FormatDuration, Unit: "ns",
		Desc: "Wake-up latency against percentile, one curve for each row, on logarithmic axes. The table has the largest value of each."}
	var ids []string
	for i, w := range ws {
		name := fmt.Sprintf("%s%s, max %s", names[i], kindOf(w.line.Marks), verdict.FormatDuration(*w.line.Measured*1e3))
		href := a.href(w.line.Records[0])
		p.Curves = append(p.Curves, plot.Curve{Name: name, Href: href, Points: w.points})
		ids = append(ids, w.line.Records...)
	}
	return p, ids
}

// apart splits comma-separated titles into the parts common to all and each title's own
// parts. A title without own parts is kept whole.
func apart(titles []string) (common string, own []string) {
	var all []string
	for _, part := range strings.Split(titles[0], ", ") {
		if !slices.ContainsFunc(titles, func(t string) bool { return !slices.Contains(strings.Split(t, ", "), part) }) {
			all = append(all, part)
		}
	}
	for _, t := range titles {
		mine := slices.DeleteFunc(strings.Split(t, ", "), func(part string) bool { return slices.Contains(all, part) })
		if len(mine) == 0 {
			mine = []string{t}
		}
		own = append(own, strings.Join(mine, ", "))
	}
	return strings.Join(all, ", "), own
}

// publishedFigures plot published next to measured values: one plot for each kind of
// figure for which several rows have both.
func publishedFigures(id string, e *experiment.Experiment, lines []ExperimentLine, a anchors) []document.Figure {
	var kinds []experiment.Figure
	rows := map[experiment.Figure][]int{}
	for i, r := range e.Rows {
		if r.Value <= 0 || lines[i].Measured == nil {
			continue
		}
		if rows[r.Figure] == nil {
			kinds = append(kinds, r.Figure)
		}
		rows[r.Figure] = append(rows[r.Figure], i)
	}
	var out []document.Figure
	for n, kind := range kinds {
		if len(rows[kind]) < 2 {
			continue
		}
		p := plot.Dots{ID: fmt.Sprintf("%s-%d", id, n), Title: "Published and measured: " + strings.ReplaceAll(string(kind), "_", " "), Legend: []string{"measured", "published"},
			Desc: "Published and measured values of each row, on one axis", Format: func(v float64) string { return three(v) + " " + kind.Unit() }, Unit: kind.Unit()}
		var ids []string
		for _, i := range rows[kind] {
			p.Rows = append(p.Rows, publishedRow(&e.Rows[i], &lines[i]))
			ids = append(ids, lines[i].Records...)
		}
		out = append(out, document.Figure{Title: p.Title, Plot: p, Note: publishedNote(kind), Records: a.refs(ids)})
	}
	return out
}

func publishedNote(kind experiment.Figure) string {
	note := "The published figure was measured on another machine. The axis is logarithmic if values are far apart."
	if kind.Most() {
		return "The largest value over all rounds. " + note
	}
	return "Measured mean, with its 95 % interval over rounds. " + note
}

func publishedRow(r *experiment.Row, l *ExperimentLine) plot.Row {
	row := plot.Row{Label: r.Title + kindOf(l.Marks), Text: l.ratioText(), Low: l.Low, High: l.High,
		Dots: []plot.Dot{{Value: r.Value, Kind: 1, Tip: r.Title + ": published " + r.Published}}}
	if l.Ratio == nil {
		row.Text = ""
	}
	if *l.Measured <= 0 { // impossible on a logarithmic axis
		row.Text, row.Low, row.High = "measured "+l.measuredText(), nil, nil
		return row
	}
	row.Dots = append(row.Dots, plot.Dot{Value: *l.Measured, Tip: r.Title + ": measured " + l.measuredText()})
	return row
}
