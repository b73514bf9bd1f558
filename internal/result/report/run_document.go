// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/drayage/dray/internal/result/report/document"
	"github.com/drayage/dray/internal/result/verdict"
)

// outputSchema is the version of the output for programs. Since 2, the figures of
// verdicts are numbers with units.
const outputSchema = 2

// output is the run's machine-readable report.
type output struct {
	Schema       int               `json:"schema"`
	Run          Run               `json:"run"`
	Verdicts     []verdict.Verdict `json:"verdicts"`
	ExitCode     int               `json:"exit_code"`
	Measurements []Measurement     `json:"measurements"`
}

// Document is the report of a run: verdicts first, then the measurements.
func (d *Data) Document() *document.Document {
	a := anchorsOf(d.Trials)
	ms := d.Measurements()
	tone := toneOf(overall(d.Verdicts))
	doc := &document.Document{
		Brand: d.brand(), Title: d.Run.Chain, Headline: Headline(d.Verdicts), Tone: tone, Banner: d.interruption(),
		Facts: d.facts(), Records: recordsOf(d.Trials), Closing: closing(d.Dir, d.next()),
		Data: output{
			Schema: outputSchema, Run: d.Run, ExitCode: d.ExitCode(),
			Verdicts: append([]verdict.Verdict{}, d.Verdicts...), Measurements: append([]Measurement{}, ms...),
		},
	}
	legend := legendOf(d.Trials)
	topo := d.topologyOf(d.linkHrefs())
	doc.Sections = []document.Section{
		{ID: "verdicts", Title: "Verdicts", Blocks: append(d.verdictBlocks(a), d.Run.Cluster.seen(), legendBlock(document.Page, legend), warningsBlock(append(d.Warnings, d.Plan.Warnings...)))},
		{ID: "topology", Title: "Topology", On: document.Page, Blocks: []document.Block{{Drawing: topo.wide() + topo.narrow()}}},
	}
	if compared := compareLinks(ms, a); compared != nil {
		doc.Sections = append(doc.Sections, document.Section{ID: "compared", Title: "Links side by side", Blocks: compared})
	}
	doc.Sections = append(doc.Sections, d.linkSections(ms, a)...)
	doc.Sections = append(doc.Sections, d.computeSections(a)...)
	doc.Sections = append(doc.Sections, d.placeSections()...)
	doc.Sections = append(doc.Sections, legendSection(legend), d.phaseSection(), d.environmentSection(), sourceSection("chain", "Chain file", ChainFile, d.ChainText))
	return doc
}

// placeSections show where the functions were.
func (d *Data) placeSections() []document.Section {
	if d.Run.Cluster != nil {
		return d.clusterSections()
	}
	return []document.Section{d.functionSection()}
}

func (d *Data) brand() string {
	if d.Run.Cluster != nil {
		return brandOfCluster
	}
	return "Drayage report"
}

// next suggests what a reader can do about the verdicts.
func (d *Data) next() []string {
	n := countWords(d.Verdicts)
	var out []string
	switch {
	case len(d.Verdicts) == 0:
		return []string{"Next: add `requires` to a link in the chain file, or `compute` to a function, to have it judged."}
	case n[verdict.Met] == len(d.Verdicts):
		return []string{fmt.Sprintf("Next: `dray compare %s OTHER` compares this run with another.", d.Dir)}
	case n[verdict.Missed] > 0:
		out = append(out, "Next: for each link that missed a requirement, the page shows its plots, its records and the other transports.")
	}
	if n[verdict.NotMeasurable] > 0 {
		out = append(out, fmt.Sprintf("Next: the reasons above say what each open verdict needs; `%s --profile thorough` measures longest.", d.Run.Command()))
	}
	return out
}

// closing are the last lines on a terminal.
func closing(dir string, next []string) []string {
	return append(next, "Report: "+filepath.Join(dir, PageFile))
}

func (d *Data) linkHrefs() map[string]string {
	hrefs := map[string]string{}
	for i, l := range d.judged() {
		hrefs[l.Name] = fmt.Sprintf("#link-%d", i+1)
	}
	return hrefs
}

func (d *Data) verdictBlocks(a anchors) []document.Block {
	if len(d.Verdicts) == 0 {
		return []document.Block{{On: document.Page, Paragraphs: []string{"No link, path or function of this chain requires anything, so there is nothing to judge."}}}
	}
	hrefs := d.linkHrefs()
	t := &document.Table{Label: "Verdicts", Columns: []document.Column{
		{Head: subjects(d.Verdicts), Key: true, Text: true}, {Head: "Requirement", Key: true, Text: true}, {Head: "Required", Text: true}, {Head: "Measured", Text: true},
		{Head: "95 % bound", Text: true}, {Head: "Verdict", Text: true},
	}}
	var reasons []string
	for _, v := range d.Verdicts {
		cells := document.Text(v.Link, v.Requirement, v.Required.Text, v.Measured.Text, v.Bound.Text, string(v.Verdict))
		cells[0].Href, cells[5].Tone = hrefs[v.Link], toneOf(string(v.Verdict))
		t.Rows = append(t.Rows, document.Row{
			Cells: cells, Marks: v.Marks, Note: basisText(v.Basis) + reasonText(v.Reason, v.Needs),
			Folded: &document.Folded{Summary: "Directions, method and records", Blocks: []document.Block{{Table: directionTable(v, a), Notes: []string{v.Method}}}},
		})
		if v.Verdict != verdict.Met {
			text := fmt.Sprintf("%s of %s (%s) %s: %s.", v.Requirement, v.Link, v.Direction, was(v.Verdict), v.Reason)
			if v.Needs != "" {
				text += " It needs " + v.Needs + "."
			}
			reasons = append(reasons, text)
		}
	}
	return []document.Block{{Table: t}, {On: document.Terminal, Notes: bases(d.Verdicts)}, {On: document.Terminal, Paragraphs: reasons}}
}

// basisText states the traffic of a verdict.
func basisText(basis string) string {
	if basis == "" {
		return ""
	}
	return "Measured with " + basis + ". "
}

// bases states the traffic of the verdicts for a terminal: a line for each.
func bases(vs []verdict.Verdict) []string {
	var order, out []string
	names := map[string][]string{}
	for _, v := range vs {
		if v.Basis == "" {
			continue
		}
		if names[v.Basis] == nil {
			order = append(order, v.Basis)
		}
		names[v.Basis] = append(names[v.Basis], v.Link+" "+v.Requirement)
	}
	for _, basis := range order {
		out = append(out, fmt.Sprintf("Measured with %s: %s.", basis, strings.Join(names[basis], ", ")))
	}
	return out
}

func reasonText(reason, needs string) string {
	if needs != "" {
		return document.Sentence(reason) + " It needs " + needs + "."
	}
	return document.Sentence(reason)
}

func directionTable(v verdict.Verdict, a anchors) *document.Table {
	t := &document.Table{Label: "Directions", Columns: []document.Column{
		{Head: "Direction", Text: true}, {Head: "Measured", Text: true}, {Head: "95 % bound", Text: true}, {Head: "Verdict", Text: true},
	}}
	for _, f := range v.Directions {
		cells := document.Text(f.Direction, f.Measured.Text, f.Bound.Text, string(f.Verdict))
		cells[3].Tone = toneOf(string(f.Verdict))
		row := document.Row{Cells: cells, Note: reasonText(f.Reason, f.Needs), Records: a.refs(f.Trials)}
		for _, why := range f.Rejected {
			row.Remarks = append(row.Remarks, "Rejected "+why)
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

func (d *Data) facts() []document.Fact {
	fs := []document.Fact{{Name: "Run", Text: d.Run.ID}}
	if !d.Run.Started.IsZero() {
		fs = append(fs, document.Fact{Name: "Started", Text: d.Run.Started.Format(timeFormat)})
	}
	if took := d.Run.Finished.Sub(d.Run.Started); took > 0 {
		fs = append(fs, document.Fact{Name: "Took", Text: elapsed(took)})
	}
	where := []document.Fact{{Name: "Host", Text: d.Plan.Host}}
	if d.Run.Cluster != nil {
		where = d.Run.Cluster.facts()
	}
	return append(append(fs, where...), document.Fact{Name: "Records", Text: fmt.Sprint(len(d.Trials))},
		document.Fact{Name: "Seed", Text: fmt.Sprint(d.Run.Seed)}, document.Fact{Name: "Exit code", Text: fmt.Sprint(d.Run.ExitCode)},
		document.Fact{Name: "dray", Text: d.Run.Dray})
}

func (d *Data) functionSection() document.Section {
	t := &document.Table{Label: "Functions", Columns: []document.Column{
		{Head: "Function", Text: true}, {Head: "Runtime", Text: true}, {Head: "CPUs", Text: true}, {Head: "Outcome", Text: true}, {Head: "Why so", Text: true},
	}}
	for _, f := range d.Plan.Functions {
		runtime, cpus, outcome := string(f.Runtime), cpusText(f.CPUs), document.None
		for _, r := range d.Run.Functions {
			if r.Name == f.Name {
				runtime, cpus, outcome = r.Runtime, cpusText(r.CPUs), r.Outcome
			}
		}
		t.Rows = append(t.Rows, document.Row{Cells: document.Text(f.Name, runtime, cpus, outcome, f.Reason)})
	}
	return document.Section{ID: "functions", Title: "Functions", On: document.Page, Blocks: []document.Block{{Table: t}}}
}

func (d *Data) phaseSection() document.Section {
	if len(d.Run.Phases) == 0 {
		return document.Section{}
	}
	var total, sum time.Duration
	for _, p := range d.Run.Phases {
		total += max(0, p.Duration)
	}
	var spans []document.Span
	for _, p := range d.Run.Phases {
		took := max(0, p.Duration)
		s := document.Span{Name: p.Name, Text: elapsed(took)}
		if total > 0 {
			s.Start = 100 * float64(sum) / float64(total)
			s.Share = max(0.4, 100*float64(took)/float64(total))
		}
		sum += took
		spans = append(spans, s)
	}
	return document.Section{ID: "phases", Title: "Phases", On: document.Page, Blocks: []document.Block{{Spans: spans}}}
}

// Headline summarises the verdicts in one line.
func Headline(vs []verdict.Verdict) string {
	n := countWords(vs)
	total := len(vs)
	switch {
	case total == 0:
		return "nothing was required"
	case n[verdict.Met] == total:
		return fmt.Sprintf("%s met", all(total))
	}
	var parts []string
	for _, word := range []verdict.Word{verdict.Missed, verdict.NotMeasurable, verdict.Met} {
		if n[word] > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n[word], word))
		}
	}
	return fmt.Sprintf("%s, of %s", strings.Join(parts, ", "), countOf(total, "requirement"))
}

func countWords(vs []verdict.Verdict) map[verdict.Word]int {
	n := map[verdict.Word]int{}
	for _, v := range vs {
		n[v.Verdict]++
	}
	return n
}

func all(n int) string {
	if n == 1 {
		return "the one requirement"
	}
	return fmt.Sprintf("all %d requirements", n)
}

func was(w verdict.Word) string {
	if w == verdict.NotMeasurable {
		return "is not measurable"
	}
	return "is " + string(w)
}

// overall is the verdict on the run as a whole.
func overall(vs []verdict.Verdict) string {
	switch {
	case len(vs) == 0:
		return noneRequired
	case verdict.ExitCode(vs) == 0:
		return string(verdict.Met)
	case verdict.ExitCode(vs) == 4:
		return string(verdict.Missed)
	}
	return string(verdict.NotMeasurable)
}
