// SPDX-License-Identifier: Apache-2.0

package report

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/drayage/dray/internal/result/record"
	"github.com/drayage/dray/internal/result/report/document"
	"github.com/drayage/dray/internal/result/stats"
	"github.com/drayage/dray/internal/spec/experiment"
)

// Words of claims.
const (
	ClaimHeld      = "held"
	ClaimNotHeld   = "not held"
	ClaimUndecided = "undecided"
)

// ClaimLine is one claim, decided or undecided.
type ClaimLine struct {
	Experiment string `json:"experiment"`
	Source     string `json:"source,omitempty"` // that concludes it; empty: the claim is our own
	Page       string `json:"page,omitempty"`   // of the source
	Text       string `json:"text"`
	Word       string `json:"word"`
	Why        string `json:"why"`
	// Marks are the marks of all its rows.
	Marks       []string         `json:"marks"`
	Comparisons []ComparisonLine `json:"comparisons"`
}

// ComparisonLine is one comparison of a claim: row A with row B, from trials paired by
// round.
type ComparisonLine struct {
	A     string   `json:"a"`
	B     string   `json:"b"`
	N     int      `json:"n"`               // pairs
	Ratio *float64 `json:"ratio,omitempty"` // of A to B; nil: Why says what is missing
	Low   *float64 `json:"low,omitempty"`   // 95 % interval of this ratio alone
	High  *float64 `json:"high,omitempty"`
	// Held is the p-value against the comparison's opposite, Reversed that against the
	// comparison, both adjusted for all comparisons of the claim (Holm).
	Held     float64 `json:"p_held"`
	Reversed float64 `json:"p_reversed"`
	Why      string  `json:"why,omitempty"`
}

// claimPairs is the minimum number of pairs for a comparison.
const claimPairs = 5

// significant is the adjusted p-value below which a comparison is decided.
const significant = 1 - stats.Confidence

// Claims decides an experiment's claims, each at 95 % confidence for all its
// comparisons together.
func (d *ExperimentsData) Claims(e *experiment.Experiment) []ClaimLine {
	rows := map[string]experiment.Row{}
	for _, r := range e.Rows {
		rows[r.Name] = r
	}
	var lines []ClaimLine
	for _, c := range e.Claims {
		l := ClaimLine{Experiment: e.Name, Page: c.Page, Text: c.Text, Marks: []string{}, Comparisons: []ComparisonLine{}}
		if c.Page != "" {
			l.Source = e.Publication()
		}
		for _, name := range c.Rows() {
			l.Marks = append(l.Marks, d.line(e, rows[name]).Marks...)
		}
		slices.Sort(l.Marks)
		l.Marks = slices.Compact(l.Marks)
		all := c.Comparisons()
		for _, one := range all {
			l.Comparisons = append(l.Comparisons, d.compare(e, rows[one.A], rows[one.B], one))
		}
		adjust(l.Comparisons)
		l.Word, l.Why = decide(all, l.Comparisons)
		lines = append(lines, l)
	}
	return lines
}

// compare compares two rows.
func (d *ExperimentsData) compare(e *experiment.Experiment, a, b experiment.Row, c experiment.Comparison) ComparisonLine {
	l := ComparisonLine{A: c.A, B: c.B, Held: 1, Reversed: 1}
	pairs, why := d.pairs(e, a, b)
	l.N, l.Why = len(pairs), why
	if why != "" {
		return l
	}
	t, err := stats.NewRatioTest(pairs, d.Run.Seed)
	if err != nil {
		l.Why = err.Error()
		return l
	}
	l.Ratio, l.Low, l.High = &t.Ratio, &t.CI.Low, &t.CI.High
	low, high := bounds(c)
	l.Held, l.Reversed = t.Against(high)
	if low > 0 {
		outside, inside := t.Against(low)
		l.Held, l.Reversed = max(l.Held, inside), min(l.Reversed, outside)
	}
	// An interval leaves out as much on each side.
	l.Held, l.Reversed = min(1, 2*l.Held), min(1, 2*l.Reversed)
	return l
}

// bounds are the ratios between which a comparison holds; low 0: any lower one.
func bounds(c experiment.Comparison) (low, high float64) {
	if c.Within > 0 {
		return 1 / (1 + float64(c.Within)), 1 + float64(c.Within)
	}
	return 0, 1 / c.Times
}

// pairs are the values of two rows in the same rounds, or why none count.
func (d *ExperimentsData) pairs(e *experiment.Experiment, a, b experiment.Row) (pairs []stats.Pair, why string) {
	for _, r := range []experiment.Row{a, b} {
		if l := d.line(e, r); l.Measured == nil {
			return nil, fmt.Sprintf("%s was not run here", r.Title)
		}
	}
	pairs, emulated := sameRound(a.Figure, d.of(a.Cell), b.Figure, d.of(b.Cell))
	switch {
	case d.elsewhere(a) != d.elsewhere(b):
		return nil, "one of the two was measured in a lab guest, on another kernel"
	case d.Run.Lab[a.Cell.String()] != d.Run.Lab[b.Cell.String()]:
		return nil, "they were measured in two lab guests, one after the other: no rounds pair them"
	case emulated:
		return nil, "an emulated figure is never compared with another"
	case len(pairs) < claimPairs:
		return pairs, fmt.Sprintf("%d pairs of trials; %d are needed", len(pairs), claimPairs)
	}
	return pairs, ""
}

// adjust corrects the p-values for the number of comparisons.
func adjust(lines []ComparisonLine) {
	held, reversed := make([]float64, len(lines)), make([]float64, len(lines))
	for i, l := range lines {
		held[i], reversed[i] = l.Held, l.Reversed
	}
	held, reversed = stats.Holm(held), stats.Holm(reversed)
	for i := range lines {
		lines[i].Held, lines[i].Reversed = held[i], reversed[i]
	}
}

// decide is the word of a claim: held if all its comparisons are, and not held if one
// is reversed.
func decide(all []experiment.Comparison, lines []ComparisonLine) (word, why string) {
	if len(lines) == 0 { // of a damaged run
		return ClaimUndecided, "it compares no rows"
	}
	reversed := func(l ComparisonLine) bool { return l.Reversed < significant }
	open := func(l ComparisonLine) bool { return !(l.Held < significant) }
	word, at := ClaimHeld, slices.IndexFunc(lines, reversed)
	if at >= 0 {
		word = ClaimNotHeld
	} else if at = slices.IndexFunc(lines, open); at >= 0 {
		word = ClaimUndecided
	} else { // the least certain one
		at = slices.Index(lines, slices.MaxFunc(lines, func(a, b ComparisonLine) int { return cmp.Compare(a.Held, b.Held) }))
	}
	why = explain(all[at], lines[at])
	if len(lines) == 1 {
		return word, why
	}
	n := 0
	for _, l := range lines {
		if !open(l) {
			n++
		}
	}
	return word, fmt.Sprintf("%d of %d comparisons hold together (Holm); %s to %s: %s", n, len(lines), lines[at].A, lines[at].B, why)
}

// explain is the ratio of a comparison and what it must be, or why there is none.
func explain(c experiment.Comparison, l ComparisonLine) string {
	if l.Ratio == nil {
		return l.Why
	}
	text := fmt.Sprintf("ratio %s, 95 %% interval %s…%s, %d pairs", three(*l.Ratio), three(*l.Low), three(*l.High), l.N)
	switch low, high := bounds(c); {
	case low > 0:
		text += fmt.Sprintf("; the same: %s…%s", three(low), three(high))
	case high < 1:
		text += fmt.Sprintf("; claimed: at most %s", three(high))
	case *l.Low <= high && high <= *l.High:
		text += ": indistinguishable"
	}
	return text
}

// elsewhere reports whether a lab guest measured a row.
func (d *ExperimentsData) elsewhere(r experiment.Row) bool {
	return slices.ContainsFunc(d.of(r.Cell), func(t record.Trial) bool { return slices.Contains(t.Marks, record.MarkLab) })
}

// sameRound are the values of two figures in the rounds that have both.
func sameRound(a experiment.Figure, as []record.Trial, b experiment.Figure, bs []record.Trial) (pairs []stats.Pair, emulated bool) {
	other := map[int]float64{}
	for _, t := range bs {
		if v, failed := valueOf(b, t); failed == "" {
			other[t.Round] = v
			emulated = emulated || slices.Contains(t.Marks, record.MarkEmulated)
		}
	}
	for _, t := range as {
		v, failed := valueOf(a, t)
		if w, both := other[t.Round]; failed == "" && both {
			pairs = append(pairs, stats.Pair{A: v, B: w})
			emulated = emulated || slices.Contains(t.Marks, record.MarkEmulated)
		}
	}
	return pairs, emulated
}

// claimSections are the claims of each source, in the order of the experiments, and
// then our own.
func claimSections(claims []ClaimLine) []document.Section {
	var sources []string
	of := map[string][]ClaimLine{}
	for _, c := range claims {
		if c.Source != "" && of[c.Source] == nil {
			sources = append(sources, c.Source)
		}
		of[c.Source] = append(of[c.Source], c)
	}
	var sections []document.Section
	for i, source := range sources { // the names may hold any text
		sections = append(sections, claimSection(fmt.Sprintf("claims-%d", i+1), "Conclusions of "+source, "", of[source]))
	}
	if own := of[""]; len(own) > 0 {
		sections = append(sections, claimSection("claims-own", "Our own claims", "No source concludes these. They should hold on any machine.", own))
	}
	return sections
}

// claimSection is a table on the page, and a list on a terminal.
func claimSection(id, title, lead string, claims []ClaimLine) document.Section {
	t := &document.Table{Label: title, Columns: []document.Column{{Head: "Claim", Text: true}, {Head: "Verdict", Text: true}, {Head: "Page", Text: true}, {Head: "Rows in", Text: true}}}
	if claims[0].Page == "" {
		t.Columns[2].On = document.Terminal // which has the list
	}
	var list []document.Fact
	count := map[string]int{}
	for _, c := range claims {
		count[c.Word]++
		cells := document.Text(c.Text, c.Word, c.Page, c.Experiment)
		cells[1].Tone, cells[3].Href = claimTones[c.Word], "#"+c.Experiment
		t.Rows = append(t.Rows, document.Row{Cells: cells, Note: c.Why, Marks: c.Marks})
		fact := document.Fact{Name: c.Text, Text: fmt.Sprintf("%s (%s)", c.Word, c.Why), Marks: c.Marks}
		if c.Page != "" {
			fact.Name += " (" + c.Page + ")"
		}
		list = append(list, fact)
	}
	counts := fmt.Sprintf("%d held, %d not held, %d undecided", count[ClaimHeld], count[ClaimNotHeld], count[ClaimUndecided])
	return document.Section{ID: id, Title: title, Over: counts, Head: title + ": " + counts, Lead: lead, Blocks: []document.Block{
		{On: document.Page, Table: t}, {On: document.Terminal, List: list},
	}}
}

var claimTones = map[string]document.Tone{ClaimHeld: document.Good, ClaimNotHeld: document.Bad, ClaimUndecided: document.Open}
