// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"html/template"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/drayage/dray/internal/result/verdict"
)

// view is what the page shows, in the order in which it shows it.
type view struct {
	Style    template.CSS
	Chain    string
	Headline string
	Class    string
	Glyph    string
	Facts    []fact
	Warnings []string
	Marks    []fact
	Verdicts []verdictView
	Wide     template.HTML
	Narrow   template.HTML
	Compared *comparison // nil: one link only
	Links    []linkView
	Machine  []fact
	Phases   []phaseView
	Funcs    []funcView
	Chainsrc string
	Records  []recordView
}

// fact is a name and what is to be said of it.
type fact struct{ Name, Text string }

// ref is a link to a record on the page.
type ref struct{ Href, Text string }

type verdictView struct {
	verdict.Verdict
	LinkHref   string
	Name       string
	Class      string
	Glyph      string
	Directions []findingView
}

type findingView struct {
	verdict.Finding
	Class, Glyph string
	Records      []ref
}

type phaseView struct {
	Name, Text string
	Start      float64 // share of the run, in percent
	Share      float64
}

type funcView struct {
	Name, Runtime, CPUs, Reason, Outcome string
}

// anchors maps trial ids to places on the page. They are numbered, since an
// id may hold any text.
type anchors map[string]int

func (a anchors) href(id string) string {
	if n, ok := a[id]; ok {
		return fmt.Sprintf("#rec-%d", n)
	}
	return ""
}

func (a anchors) refs(ids []string) []ref {
	out := make([]ref, 0, len(ids))
	for _, id := range ids {
		out = append(out, ref{a.href(id), fmt.Sprintf("%d", a[id])})
	}
	return out
}

func (d *Data) view() view {
	a := anchors{}
	for i, t := range d.Trials {
		a[t.ID] = i + 1
	}
	linkHref := map[string]string{}
	for i, l := range d.Plan.Links {
		linkHref[l.Name] = fmt.Sprintf("#link-%d", i+1)
	}
	word := overall(d.Verdicts)
	topo := d.topologyOf(linkHref)
	v := view{
		Chain: d.Run.Chain, Headline: strings.TrimSuffix(sentence(Headline(d.Verdicts)), "."), Class: wordClass(word), Glyph: glyph(word),
		Facts: d.facts(), Warnings: d.warnings(), Marks: d.marks(),
		Wide: topo.wide(), Narrow: topo.narrow(),
		Compared: d.compare(a), Links: d.linkViews(a), Machine: d.machine(), Phases: d.phases(), Funcs: d.functions(),
		Chainsrc: d.ChainText, Records: d.recordViews(),
	}
	for _, vd := range d.Verdicts {
		v.Verdicts = append(v.Verdicts, verdictViewOf(vd, a, linkHref))
	}
	return v
}

// warnings are what a reader must know before any figure.
func (d *Data) warnings() []string {
	var all []string
	if text := d.interruption(); text != "" {
		all = append(all, text)
	}
	return append(append(all, d.Warnings...), d.Plan.Warnings...)
}

func verdictViewOf(vd verdict.Verdict, a anchors, linkHref map[string]string) verdictView {
	out := verdictView{
		Verdict: vd, LinkHref: linkHref[vd.Link], Name: strings.ReplaceAll(vd.Requirement, "_", " "),
		Class: wordClass(string(vd.Verdict)), Glyph: glyph(string(vd.Verdict)),
	}
	for _, f := range vd.Directions {
		out.Directions = append(out.Directions, findingView{
			Finding: f, Class: wordClass(string(f.Verdict)), Glyph: glyph(string(f.Verdict)), Records: a.refs(f.Trials),
		})
	}
	return out
}

// overall is the word that the run as a whole deserves.
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

// sentence begins text with a capital and ends it with a full stop.
func sentence(s string) string {
	r, n := utf8.DecodeRuneInString(s)
	if s == "" || n == 0 {
		return ""
	}
	return string(unicode.ToUpper(r)) + strings.TrimSuffix(s[n:], ".") + "."
}

func (d *Data) facts() []fact {
	fs := []fact{{"Run", d.Run.ID}}
	if !d.Run.Started.IsZero() {
		fs = append(fs, fact{"Started", d.Run.Started.Format("2 January 2006, 15:04:05 MST")})
	}
	if took := d.Run.Finished.Sub(d.Run.Started); took > 0 {
		fs = append(fs, fact{"Took", elapsed(took)})
	}
	return append(fs,
		fact{"Host", d.Plan.Host}, fact{"Records", fmt.Sprint(len(d.Trials))},
		fact{"Seed", fmt.Sprint(d.Run.Seed)}, fact{"Exit code", fmt.Sprint(d.Run.ExitCode)}, fact{"dray", d.Run.Dray})
}

// marks lists every mark that a figure of this report carries, with its meaning.
func (d *Data) marks() []fact {
	count := map[string]int{}
	var names []string
	for _, t := range d.Trials {
		for _, m := range t.Marks {
			if !t.Warmup {
				if count[m] == 0 {
					names = append(names, m)
				}
				count[m]++
			}
		}
	}
	slices.Sort(names)
	var out []fact
	for _, m := range names {
		text := countOf(count[m], "record")
		if meaning := markMeanings[m]; meaning != "" {
			text = meaning + " (" + text + ")"
		}
		out = append(out, fact{m, text})
	}
	return out
}

func (d *Data) phases() []phaseView {
	var total, sum time.Duration
	for _, p := range d.Run.Phases {
		total += max(0, p.Duration)
	}
	var out []phaseView
	for _, p := range d.Run.Phases {
		took := max(0, p.Duration)
		v := phaseView{Name: p.Name, Text: elapsed(took)}
		if total > 0 {
			v.Start = 100 * float64(sum) / float64(total)
			v.Share = max(0.4, 100*float64(took)/float64(total))
		}
		sum += took
		out = append(out, v)
	}
	return out
}

func (d *Data) functions() []funcView {
	var out []funcView
	for _, f := range d.Plan.Functions {
		v := funcView{Name: f.Name, Runtime: string(f.Runtime), CPUs: cpusText(f.CPUs), Reason: f.Reason, Outcome: "–"}
		for _, r := range d.Run.Functions {
			if r.Name == f.Name {
				v.Runtime, v.CPUs, v.Outcome = r.Runtime, cpusText(r.CPUs), r.Outcome
			}
		}
		out = append(out, v)
	}
	return out
}
