// SPDX-License-Identifier: Apache-2.0

package live

import (
	"fmt"
	"io"
	"strings"

	"github.com/drayage/dray/internal/link/telemetry"
	"github.com/drayage/dray/internal/result/verdict"
	"github.com/drayage/dray/internal/spec/layout"
)

// Text writes a table of links: each direction's traffic in the last interval, and
// the state of each link's requirements over the window. Lines fit into width; 0
// means no limit.
func Text(w io.Writer, links []Link, width int) error {
	if len(links) == 0 {
		text := "no link has native ports; `dray up` a chain whose ports have `face: native`"
		_, err := fmt.Fprintln(w, strings.Join(layout.Wrap(text, width), "\n"))
		return err
	}
	t := layout.Table{Head: []string{"DIRECTION", "PACKETS", "BITRATE", "P50", "P99", "P99.9", "LOST", "WAITING"}}
	for _, l := range links {
		flows := l.Now
		if len(flows) == 0 {
			flows = l.Total
		}
		t.Add(fmt.Sprintf("%s/%s: %s", l.Chain, l.Status.Name, l.state()))
		for _, f := range flows {
			cells := append([]string{fmt.Sprintf("  %s → %s", f.From, f.To)}, Figures(f)...)
			t.Add(append(cells, fmt.Sprint(f.Lost), fmt.Sprint(f.Waiting))...)
		}
	}
	if err := t.Write(w, width); err != nil {
		return err
	}
	return verdictText(w, links, width)
}

// Figures are the packet rate, the bitrate, and the 50th, 99th and 99.9th percentile of
// the latency, as text with units; a dash is a figure that the flow does not have.
func Figures(f telemetry.Flow) []string {
	packets, bits := fmt.Sprintf("%d", f.Received), "–"
	if f.Interval > 0 {
		packets, bits = verdict.FormatPacketRate(f.PacketRate()), verdict.FormatBitrate(f.Bitrate())
	}
	return []string{packets, bits, quantile(f, 0.5), quantile(f, 0.99), quantile(f, 0.999)}
}

// quantile is the end of its bucket; a percentile takes ten samples beyond it.
func quantile(f telemetry.Flow, q float64) string {
	if float64(f.Latency.Count)*(1-q) < 10 {
		return "–"
	}
	_, high := f.Latency.Quantile(q)
	return verdict.FormatDuration(high)
}

// state is one clause: the link's transport, and its problem if any.
func (l Link) state() string {
	s := l.Status
	text := fmt.Sprintf("%s %s", s.Kind, s.State)
	if s.Generation > 0 {
		text += fmt.Sprintf(", generation %d", s.Generation)
	}
	if s.Pages != "" {
		text += fmt.Sprintf(", %.1f MiB %s pages", float64(s.Bytes)/(1<<20), s.Pages)
	}
	var violations uint64
	for _, f := range l.Total {
		violations += f.Violations
	}
	if violations > 0 {
		text += fmt.Sprintf(", %d violations", violations)
	}
	if s.Late {
		text += ", busy: these figures are stale"
	}
	if s.LastError != "" && s.State != "active" {
		text += ": " + s.LastError
	}
	return text
}

// verdictText lists the verdicts of all links.
func verdictText(w io.Writer, links []Link, width int) error {
	t := layout.Table{Head: []string{"LINK", "REQUIREMENT", "REQUIRED", "MEASURED", "BOUND", "VERDICT"}}
	for _, l := range links {
		for _, v := range l.Verdicts {
			t.Add(l.Chain+"/"+v.Link, v.Requirement, v.Required.Text, v.Measured.Text, v.Bound.Text, string(v.Verdict))
		}
	}
	if len(t.Rows) == 0 {
		return nil
	}
	fmt.Fprintln(w)
	if err := t.Write(w, width); err != nil {
		return err
	}
	_, err := fmt.Fprintln(w, "\nFunctions report these figures; latency is sampled from stamped packets.")
	return err
}
