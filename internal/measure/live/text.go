// SPDX-License-Identifier: Apache-2.0

package live

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/drayage/dray/internal/link/telemetry"
	"github.com/drayage/dray/internal/result/verdict"
)

// Text writes a table of links: of each direction what happened in the last
// interval, and of each link how its requirements stand over the window.
func Text(w io.Writer, links []Link) error {
	if len(links) == 0 {
		_, err := fmt.Fprintln(w, "no link has native ports; `dray up` a chain whose ports have `face: native`")
		return err
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "LINK\tDIRECTION\tPACKETS\tBITRATE\tP50\tP99\tP99.9\tLOST\tWAITING\tSTATE")
	for _, l := range links {
		flows := l.Now
		if len(flows) == 0 {
			flows = l.Total
		}
		for i, f := range flows {
			name, state := l.Chain+"/"+l.Status.Name, l.state()
			if i > 0 {
				name, state = "", ""
			}
			fmt.Fprintf(t, "%s\t%s → %s\t%s\t%d\t%d\t%s\n", name, f.From, f.To, figures(f), f.Lost, f.Waiting, state)
		}
		if len(flows) == 0 {
			fmt.Fprintf(t, "%s/%s\t–\t–\t–\t–\t–\t–\t–\t–\t%s\n", l.Chain, l.Status.Name, l.state())
		}
	}
	if err := t.Flush(); err != nil {
		return err
	}
	return verdictText(w, links)
}

// figures are the rate and the latency columns.
func figures(f telemetry.Flow) string {
	packets, bits := fmt.Sprintf("%d", f.Received), "–"
	if f.Interval > 0 {
		packets, bits = verdict.FormatPacketRate(f.PacketRate()), verdict.FormatBitrate(f.Bitrate())
	}
	return strings.Join([]string{packets, bits, quantile(f, 0.5), quantile(f, 0.99), quantile(f, 0.999)}, "\t")
}

// quantile is the end of the bucket that holds it; a percentile takes ten
// samples beyond it.
func quantile(f telemetry.Flow, q float64) string {
	if float64(f.Latency.Count)*(1-q) < 10 {
		return "–"
	}
	_, high := f.Latency.Quantile(q)
	return verdict.FormatDuration(high)
}

// state is one clause: how the link is made, and what is wrong with it.
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
		text += ", busy: these figures are old"
	}
	if s.LastError != "" && s.State != "active" {
		text += ": " + s.LastError
	}
	return text
}

// verdictText lists the verdicts of all links.
func verdictText(w io.Writer, links []Link) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	some := false
	for _, l := range links {
		for _, v := range l.Verdicts {
			if !some {
				fmt.Fprintln(t, "\nLINK\tREQUIREMENT\tREQUIRED\tMEASURED\tBOUND\tVERDICT")
			}
			some = true
			fmt.Fprintf(t, "%s/%s\t%s\t%s\t%s\t%s\t%s\n", l.Chain, v.Link, v.Requirement, v.Required, v.Measured, v.Bound, v.Verdict)
		}
	}
	if err := t.Flush(); err != nil || !some {
		return err
	}
	_, err := fmt.Fprintln(w, "\nFigures are reported by the functions, from one stamped packet in many.")
	return err
}
