// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"slices"
	"time"

	"github.com/drayage/dray/internal/result/record"
	"github.com/drayage/dray/internal/result/report/document"
	"github.com/drayage/dray/internal/spec/experiment"
)

// experimentsOutput is the machine-readable report.
type experimentsOutput struct {
	ExperimentsRun
	Directory string           `json:"directory"`
	Warnings  []string         `json:"warnings"`
	Lines     []ExperimentLine `json:"lines"`
	Claims    []ClaimLine      `json:"claims"`
}

// Document is the report of experiments: a section for each, published next to
// measured.
func (d *ExperimentsData) Document() *document.Document {
	a := anchorsOf(d.Trials)
	more := besides(d.Warnings, d.Unfinished)
	out := experimentsOutput{ExperimentsRun: d.Run, Directory: d.Dir, Warnings: append([]string{}, d.Warnings...), Lines: []ExperimentLine{}, Claims: []ClaimLine{}}
	var sections []document.Section
	differing := 0
	contents := &document.Table{Label: "Contents", Columns: []document.Column{{Head: "Experiment", Text: true}, {Head: "What it is", Text: true}, {Head: "Rows measured"}}}
	rows, measured := 0, 0
	for i := range d.Run.Experiments {
		e := &d.Run.Experiments[i]
		lines, claims := d.Lines(e), d.Claims(e)
		out.Lines, out.Claims = append(out.Lines, lines...), append(out.Claims, claims...)
		sections = append(sections, d.section(i, e, lines, a))
		n := 0
		for _, l := range lines {
			if l.Measured != nil {
				n++
				if l.Differs != "" {
					differing++
				}
			}
		}
		cells := document.Text(e.Name, e.Title, fmt.Sprintf("%d of %d", n, len(lines)))
		cells[0].Href = "#" + e.Name
		contents.Rows = append(contents.Rows, document.Row{Cells: cells})
		rows, measured = rows+len(lines), measured+n
	}
	legend := withDiffers(legendOf(d.Trials), differing)
	first := document.Section{ID: "contents", Title: "Contents", On: document.Page, Blocks: []document.Block{{Table: contents}, legendBlock(document.Page, legend), warningsBlock(more)}}
	last := document.Section{On: document.Terminal, Blocks: []document.Block{{Notes: append(more, budget(d.native()), "A/A: "+d.noise()+".",
		fmt.Sprintf("Profile %s, %d rounds, seed %d.", d.Run.Profile, d.Run.Rounds, d.Run.Seed))}}}
	return &document.Document{
		Brand: "Drayage bench", Title: "Published experiments", Headline: fmt.Sprintf("%d of %d rows measured", measured, rows), Tone: document.Neutral, Banner: d.Unfinished,
		Facts: d.facts(), Records: recordsOf(d.Trials), Data: out, Closing: closing(d.Dir, nil),
		Sections: slices.Concat(claimSections(out.Claims), []document.Section{first}, sections, []document.Section{last, legendSection(legend), environmentSection(d.Trials, nil)}),
	}
}

func (d *ExperimentsData) facts() []document.Fact {
	h := d.Run.Host
	return []document.Fact{
		{Name: "Profile", Text: fmt.Sprintf("%s: %d rounds, trials of %v", d.Run.Profile, d.Run.Rounds, d.Run.Trial)},
		{Name: "Started", Text: d.Run.Started.UTC().Format(time.RFC3339)}, {Name: "Seed", Text: fmt.Sprint(d.Run.Seed)},
		{Name: "Machine", Text: fmt.Sprintf("%s, %d CPUs, Linux %s", h.CPUModel, len(h.CPUs), h.Kernel)}, {Name: "Dray", Text: d.Run.Dray},
		{Name: "Current physical limit", Text: limitsOf(d.native())}, {Name: "The generator alone", Text: ceilingsOf(d.native())}, {Name: "A/A", Text: d.noise()},
	}
}

func (d *ExperimentsData) section(number int, e *experiment.Experiment, lines []ExperimentLine, a anchors) document.Section {
	s := document.Section{ID: e.Name, Title: e.Name + ": " + e.Title, Head: fmt.Sprintf("%s: %s (%s)", e.Name, e.Title, e.Source), Lead: e.Source}
	table, absent := experimentTable(e, lines, a)
	if len(table.Rows) > 0 {
		s.Blocks = append(s.Blocks, document.Block{Table: table}, differences(lines))
	}
	if len(absent) > 0 {
		s.Blocks = append(s.Blocks, document.Block{Title: "Rows without a figure", List: absent})
	}
	if figures := d.figures(number, e, lines, a); len(figures) > 0 {
		s.Blocks = append(s.Blocks, document.Block{Figures: figures})
	}
	if len(e.Notes) > 0 {
		s.Blocks = append(s.Blocks, document.Block{Title: "Notes", Points: e.Notes})
	}
	return s
}

// experimentTable lists the measured rows, and the reasons for the others.
func experimentTable(e *experiment.Experiment, lines []ExperimentLine, a anchors) (t *document.Table, absent []document.Fact) {
	t = &document.Table{Label: "Rows of " + e.Name, Columns: []document.Column{
		{Head: "What", Text: true, Key: true}, {Head: "Published", Text: true}, {Head: "Measured", Text: true}, {Head: "95 % interval", Short: "interval"}, {Head: "n"}, {Head: "Ratio"},
	}}
	for _, l := range lines {
		if l.Measured == nil {
			absent = append(absent, document.Fact{Name: fmt.Sprintf("%s (published: %s)", l.Title, orNone(l.Published)), Text: l.measuredText()})
			continue
		}
		row := document.Row{
			Cells: document.Text(l.Title, orNone(l.Published), l.measuredText(), l.intervalText(), l.countText(), l.ratioText()),
			Marks: l.marksOf(), Records: a.refs(l.Records),
		}
		if l.Differs != "" {
			row.Note = "Differs from the source: " + l.Differs
		}
		if l.Failed != "" {
			row.Remarks = []string{"some trials failed: " + l.Failed}
		}
		t.Rows = append(t.Rows, row)
	}
	return t, absent
}

// measuredText is a line's figure, or why it has none.
func (l *ExperimentLine) measuredText() string {
	switch {
	case l.Measured == nil:
		return "not run here: " + l.NotRun
	case l.Holds != nil && *l.Holds:
		return "holds"
	case l.Holds != nil:
		return "does not hold"
	case l.Most:
		return fmt.Sprintf("%s %s (largest in %d × %v)", three(*l.Measured), l.Unit, l.N, l.Trial)
	}
	return three(*l.Measured) + " " + l.Unit
}

func (l *ExperimentLine) intervalText() string {
	if l.Low == nil || l.High == nil {
		return document.None
	}
	return three(*l.Low) + "…" + three(*l.High)
}

func (l *ExperimentLine) ratioText() string {
	if l.Ratio == nil {
		return document.None
	}
	return "× " + three(*l.Ratio)
}

func (l *ExperimentLine) countText() string {
	if l.N == 0 {
		return document.None
	}
	return fmt.Sprint(l.N)
}

// marksOf are a line's marks, with the sent rate if that missed the load.
func (l *ExperimentLine) marksOf() []string {
	marks := slices.Clone(l.Marks)
	if at := slices.Index(marks, record.MarkLoadMissed); at >= 0 && l.Sent != nil {
		marks[at] += " (" + l.Sent.String() + ")"
	}
	return marks
}
