// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"strings"

	"github.com/drayage/dray/internal/plan"
	"github.com/drayage/dray/internal/result/report/document"
	"github.com/drayage/dray/internal/result/verdict"
	"github.com/drayage/dray/internal/spec/parse"
)

// subjects is the heading of what the verdicts are about.
func subjects(vs []verdict.Verdict) string {
	of := map[string]bool{}
	for _, v := range vs {
		of["link"] = of["link"] || !v.Path && !v.Function
		of["path"], of["function"] = of["path"] || v.Path, of["function"] || v.Function
	}
	var words []string
	for _, word := range []string{"link", "path", "function"} {
		if of[word] || word == "link" && of["path"] {
			words = append(words, word)
		}
	}
	if len(words) == 0 {
		return "Link"
	}
	text := strings.Join(words, ", ")
	if at := strings.LastIndex(text, ", "); at >= 0 {
		text = text[:at] + " or " + text[at+2:]
	}
	return strings.ToUpper(text[:1]) + text[1:]
}

// courseText is a path's ends, and the functions between them.
func courseText(l plan.Link) string {
	text := fmt.Sprintf("from %s to %s", l.Ends[0], l.Ends[1])
	if len(l.Course.Through) > 0 {
		text += " through " + parse.All(l.Course.Through)
	}
	return text
}

// pathFacts are the links of a path, with what the plan expected each to add.
func (d *Data) pathFacts(l plan.Link) []document.Fact {
	var fs []document.Fact
	for _, t := range d.Plan.Path(l.Name).Terms {
		over := d.Plan.Link(t.Link).Transport
		fs = append(fs, document.Fact{Name: t.Link, Text: strings.Join(append([]string{"over " + over}, termTexts(t)...), ", ")})
	}
	if l.Load > 0 {
		fs = append(fs, document.Fact{Name: "Declared load", Text: l.Load.String()})
	}
	return fs
}

func termTexts(t plan.Term) []string {
	var texts []string
	if t.Latency > 0 {
		texts = append(texts, fmt.Sprintf("expected within %s at p%v", t.Latency, t.Percentile))
	}
	if t.Bitrate > 0 {
		texts = append(texts, fmt.Sprintf("up to %s", t.Bitrate))
	}
	return append(texts, t.Source)
}
