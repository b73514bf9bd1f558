// SPDX-License-Identifier: Apache-2.0

package report

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/drayage/dray/internal/plan"
	"github.com/drayage/dray/internal/result/record"
	"github.com/drayage/dray/internal/result/report/document"
	"github.com/drayage/dray/internal/result/stats"
)

// Window is the fate of one kind of messages by their receive windows, over all trials.
type Window struct {
	Kind     string `json:"kind"` // as in record.Windows
	Early    uint64 `json:"early"`
	OnTime   uint64 `json:"on_time"`
	Late     uint64 `json:"late"`
	SentLate uint64 `json:"sent_late"`
	// Arrived are the quantiles of those on time or late, since the window opened.
	Arrived []Quantile `json:"arrived"`
}

// windowPercentiles are those of Window.Arrived.
var windowPercentiles = []float64{50, 99}

// windows collects the receive windows of several trials of one kind.
type windows struct {
	sums  map[string]record.Window
	dists map[string][]*stats.Dist
}

// take adds one trial's windows, if any; ok is false if they are malformed.
func (w *windows) take(t record.Trial) (ok bool) {
	dists := map[string]*stats.Dist{}
	for kind, got := range t.Windows {
		dist, err := stats.NewDist(got.AfterOpening, 0, 0)
		if err != nil {
			return false
		}
		dists[kind] = dist
	}
	if w.sums == nil {
		w.sums, w.dists = map[string]record.Window{}, map[string][]*stats.Dist{}
	}
	for kind, got := range t.Windows {
		w.sums[kind], w.dists[kind] = w.sums[kind].Plus(got), append(w.dists[kind], dists[kind])
	}
	return true
}

// sumUp has the kinds in alphabetical order, in which they are sent.
func (w *windows) sumUp() []Window {
	var out []Window
	for _, kind := range slices.Sorted(maps.Keys(w.sums)) {
		sum, pool := w.sums[kind], stats.Pool(w.dists[kind]...)
		all := Window{Kind: kind, Early: sum.Early, OnTime: sum.OnTime, Late: sum.Late, SentLate: sum.SentLate}
		for _, p := range windowPercentiles {
			all.Arrived = append(all.Arrived, quantile(pool, p))
		}
		out = append(out, all)
	}
	return out
}

// windowNames are the kinds of messages as their standards have them.
var windowNames = map[string]string{"c_plane": "C-plane", "u_plane": "U-plane", "dl_tti": "DL_TTI.request", "tx_data": "TX_DATA.request"}

func windowTable(l plan.Link, ms []Measurement, a anchors) *document.Table {
	t := &document.Table{Label: "Receive windows of link " + l.Name, Columns: []document.Column{
		{Head: "Messages", Text: true, Key: true}, {Head: "Direction", Text: true, Key: true},
		{Head: "Early"}, {Head: "On time"}, {Head: "Late"}, {Head: "Sent late", Tip: "sent after the transmission window; not judged"},
	}}
	for _, p := range windowPercentiles {
		t.Columns = append(t.Columns, document.Column{Head: fmt.Sprintf("Arrived p%g", p), Tip: "since the window opened, if not early"})
	}
	for _, m := range ms {
		for _, w := range m.Windows {
			cells := []string{cmp.Or(windowNames[w.Kind], w.Kind), m.way(), fmt.Sprint(w.Early), fmt.Sprint(w.OnTime), fmt.Sprint(w.Late), fmt.Sprint(w.SentLate)}
			for _, q := range w.Arrived {
				cells = append(cells, quantileText(q))
			}
			t.Rows = append(t.Rows, m.row(a, cells...))
		}
	}
	return t
}
