// SPDX-License-Identifier: Apache-2.0

package report

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"html/template"
	"io"
	"time"

	"github.com/drayage/dray/internal/result/record"
)

//go:embed experiment_page.html
var experimentPageText string

var experimentTemplate = parsePage(experimentPageText)

// experimentView is what the page shows.
type experimentView struct {
	Style    template.CSS
	Headline string
	Facts    []fact
	Warnings []string
	Sections []experimentSection
	Records  []experimentRecord
}

type experimentSection struct {
	Name, Title, Source string
	Rows, Measured      int
	Lines               []experimentLineView
	Figures             []*figure
	Claims              []ClaimLine
	Notes               []string
}

type experimentLineView struct {
	Title, Published, Measured, Interval, N, Ratio, NotRun, Failed, Sent string
	Marks                                                                []string
	Records                                                              []ref
}

type experimentRecord struct{ ID, Title, Text string }

// longestRecord bounds what the page shows of one record, in bytes; the file of
// records has it whole.
const longestRecord = 8 << 10

// HTML writes the page: it needs no network and no scripts.
func (d *ExperimentsData) HTML(w io.Writer) error {
	v, err := d.view()
	if err != nil {
		return err
	}
	return writePage(w, experimentTemplate, v)
}

func (d *ExperimentsData) view() (*experimentView, error) {
	v := &experimentView{Style: template.CSS(styleText + benchStyleText), Warnings: d.Warnings}
	numbers := map[string]int{}
	for i, t := range d.Trials {
		numbers[t.ID] = i + 1
		r, err := recordOf(i+1, t)
		if err != nil {
			return nil, err
		}
		v.Records = append(v.Records, r)
	}
	rows, measured := 0, 0
	for i := range d.Run.Experiments {
		e := &d.Run.Experiments[i]
		s := experimentSection{Name: e.Name, Title: e.Title, Source: e.Source, Claims: d.Claims(e), Notes: e.Notes}
		lines := d.Lines(e)
		for _, l := range lines {
			s.Rows++
			if l.Measured != nil {
				s.Measured++
			}
			s.Lines = append(s.Lines, l.view(numbers))
		}
		s.Figures = d.figures(i, e, lines, numbers)
		rows, measured = rows+s.Rows, measured+s.Measured
		v.Sections = append(v.Sections, s)
	}
	v.Headline = fmt.Sprintf("%d of %d rows measured", measured, rows)
	h := d.Run.Host
	v.Facts = []fact{
		{"Profile", fmt.Sprintf("%s: %d rounds, trials of %v", d.Run.Profile, d.Run.Rounds, d.Run.Trial)},
		{"Started", d.Run.Started.UTC().Format(time.RFC3339)}, {"Seed", fmt.Sprint(d.Run.Seed)},
		{"Machine", fmt.Sprintf("%s, %d CPUs, Linux %s", h.CPUModel, len(h.CPUs), h.Kernel)}, {"Dray", d.Run.Dray},
		{"Limit of the moment", limitsOf(d.native())}, {"The generator alone", ceilingsOf(d.native())}, {"A/A", d.noise()},
	}
	return v, nil
}

func (l *ExperimentLine) view(numbers map[string]int) experimentLineView {
	v := experimentLineView{
		Title: l.Title, Published: orNone(l.Published), Interval: l.intervalText(), N: l.countText(), Ratio: l.ratioText(), NotRun: l.NotRun, Marks: l.Marks, Sent: l.Sent.String(),
	}
	if l.Measured != nil {
		v.Measured = l.measuredText()
	}
	if l.Failed != "" {
		v.Failed = "some trials failed: " + l.Failed
	}
	v.Records = recordRefs(numbers, l.Records)
	return v
}

// recordOf shows a record without the buckets of its histograms, which would hide the rest.
func recordOf(number int, t record.Trial) (experimentRecord, error) {
	if t.Latency != nil {
		l := *t.Latency
		l.Histogram.Counts, t.Latency = nil, &l
	}
	if t.OneWay != nil {
		w := *t.OneWay
		w.Latency.Counts, w.Intended.Counts, w.Lateness.Counts, w.IPDV.Counts, t.OneWay = nil, nil, nil, nil, &w
	}
	text, err := json.MarshalIndent(t, "", " ")
	if err != nil {
		return experimentRecord{}, err
	}
	if len(text) > longestRecord {
		text = append(text[:longestRecord:longestRecord], "\n… whole, with the buckets of histograms, in "+RecordsFile...)
	}
	return experimentRecord{fmt.Sprintf("record-%d", number), fmt.Sprintf("%d: %s", number, t.ID), string(bytes.ToValidUTF8(text, nil))}, nil
}
