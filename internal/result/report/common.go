// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"slices"

	"github.com/drayage/dray/internal/result/record"
	"github.com/drayage/dray/internal/result/report/document"
)

// timeFormat is the format of times in a page's head.
const timeFormat = "2 January 2006, 15:04:05 MST"

// Plain makes text from a file harmless on a terminal.
func Plain(s string) string { return document.Plain(s) }

// anchors maps trial ids to places on the page. They are numbers, since an id may hold
// any text.
type anchors map[string]int

func anchorsOf(trials []record.Trial) anchors {
	a := anchors{}
	for i, t := range trials {
		a[t.ID] = i + 1
	}
	return a
}

func (a anchors) href(id string) string {
	if n, ok := a[id]; ok {
		return "#" + document.Anchor(n)
	}
	return ""
}

func (a anchors) refs(ids []string) []document.Ref {
	out := make([]document.Ref, 0, len(ids))
	for _, id := range ids {
		out = append(out, document.Ref{Href: a.href(id), Text: fmt.Sprint(a[id])})
	}
	return out
}

// legendOf explains every mark on a figure.
func legendOf(trials []record.Trial) []document.Fact {
	count := map[string]int{}
	var names []string
	for _, t := range trials {
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
	var out []document.Fact
	for _, m := range names {
		text := countOf(count[m], "record")
		if meaning := Meaning(m); meaning != "" {
			text = meaning + " (" + text + ")"
		}
		out = append(out, document.Fact{Name: m, Text: text, Mark: true})
	}
	return out
}

// legendBlock and legendSection put the legend where each medium needs it: on the page
// below its most important table, on a terminal at the end.
func legendBlock(on document.Medium, legend []document.Fact) document.Block {
	if len(legend) == 0 {
		return document.Block{}
	}
	return document.Block{Title: "What the marks mean", On: on, List: legend}
}

func legendSection(legend []document.Fact) document.Section {
	return document.Section{On: document.Terminal, Blocks: []document.Block{legendBlock(document.Terminal, legend)}}
}

// warningsBlock folds warnings: they concern a run's preparation, and readers want its
// outcome first.
func warningsBlock(warnings []string) document.Block {
	if len(warnings) == 0 {
		return document.Block{}
	}
	return document.Block{On: document.Page, Folded: &document.Folded{
		Summary: countOf(len(warnings), "warning"), Blocks: []document.Block{{Points: warnings}},
	}}
}

// besides are the warnings that are not in the banner.
func besides(warnings []string, banner string) []string {
	return slices.DeleteFunc(slices.Clone(warnings), func(w string) bool { return w == banner })
}

// sourceSection shows an input file of the run; empty if there is none.
func sourceSection(id, title, file, text string) document.Section {
	if text == "" {
		return document.Section{}
	}
	return document.Section{ID: id, Title: title, On: document.Page, Blocks: []document.Block{
		{Folded: &document.Folded{Summary: "Show " + file, Source: text}},
	}}
}

func countOf(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
