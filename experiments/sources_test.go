// SPDX-License-Identifier: Apache-2.0

package experiments

import (
	_ "embed"
	"flag"
	"fmt"
	"os"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/drayage/dray/internal/spec/experiment"
)

//go:embed sources.txt
var sources string

var update = flag.Bool("update", false, "write docs/sources.md")

// sourceLine is a line of sources.txt.
type sourceLine struct {
	rows, word, did string
	used            bool
}

// Words of sources.txt.
const (
	same    = "same"
	differs = "differs"
	nothing = "nothing"
	notRun  = "not-run"
)

// wordOf is the word that a row's fields permit; nothing and same look alike.
func wordOf(r experiment.Row) string {
	switch {
	case r.NotRun != "":
		return notRun
	case r.Differs != "":
		return differs
	}
	return same
}

func sourceLines(t *testing.T) []*sourceLine {
	t.Helper()
	var lines []*sourceLine
	for _, text := range strings.Split(strings.TrimSpace(sources), "\n") {
		if strings.HasPrefix(text, "#") {
			continue
		}
		parts := strings.Split(text, " | ")
		if len(parts) != 3 || !slices.Contains([]string{same, differs, nothing, notRun}, parts[1]) {
			t.Fatalf("%q: want ROWS | WORD | WHAT THE SOURCE DID", text)
		}
		lines = append(lines, &sourceLine{rows: parts[0], word: parts[1], did: parts[2]})
	}
	return lines
}

// TestRowsAreTrueToTheirSource: each row next to a published figure measures what the
// source did, or says how it differs.
func TestRowsAreTrueToTheirSource(t *testing.T) {
	lines := sourceLines(t)
	seen := map[string]int{}
	for _, name := range Names() {
		e, err := Find(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range e.Rows {
			if r.Published == "" && r.Differs == "" {
				continue
			}
			l := lineOf(t, lines, name+"/"+r.Name)
			if l == nil {
				t.Errorf("%s/%s: sources.txt does not say what the source did", name, r.Name)
				continue
			}
			seen[l.word]++
			if word := wordOf(r); word != l.word && (word != same || l.word != nothing) {
				t.Errorf("%s/%s is %q, and sources.txt says %q (%s)", name, r.Name, word, l.word, l.did)
			}
			if r.Differs != "" && !strings.Contains(r.Differs, "; here ") {
				t.Errorf("%s/%s: differs names the source's measurement, and then ours: %q", name, r.Name, r.Differs)
			}
		}
	}
	for _, l := range lines {
		if !l.used {
			t.Errorf("%s: no row has a published figure or differs", l.rows)
		}
	}
	if seen[same] == 0 || seen[differs] == 0 || seen[nothing] == 0 || seen[notRun] == 0 {
		t.Errorf("words %v", seen)
	}
}

// lineOf is the only line about a row; nil: there is none.
func lineOf(t *testing.T, lines []*sourceLine, row string) *sourceLine {
	t.Helper()
	var found *sourceLine
	for _, l := range lines {
		ok, err := path.Match(l.rows, row)
		if err != nil {
			t.Fatal(err)
		}
		if ok && found != nil {
			t.Errorf("%s: two lines of sources.txt, %s and %s", row, found.rows, l.rows)
		}
		if ok {
			found, l.used = l, true
		}
	}
	return found
}

// group is rows of an experiment with one line of sources.txt that differ alike.
type group struct {
	line        *sourceLine
	differs     string
	rows, cells []string
}

// sourcesPage is docs/sources.md: what each source did, and what is measured here.
func sourcesPage(t *testing.T) string {
	var b strings.Builder
	b.WriteString(pageHead)
	lines := sourceLines(t)
	for _, name := range Names() {
		e, err := Find(name)
		if err != nil {
			t.Fatal(err)
		}
		groups := groupsOf(t, lines, e)
		if len(groups) == 0 {
			continue
		}
		fmt.Fprintf(&b, "\n## %s\n\n%s. %s.\n\n| rows | the source | here | same or differs |\n|---|---|---|---|\n", e.Name, e.Title, e.Source)
		for _, g := range groups {
			fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", strings.Join(g.rows, "<br>"), g.line.did, strings.Join(slices.Compact(g.cells), "<br>"), g.verdict())
		}
	}
	return b.String()
}

const pageHead = `# What the sources did, and what is measured here

Each row of the [published experiments](experiments.md) that has a published figure, or that differs from its source. Generated from
` + "`experiments/*.yaml` and `experiments/sources.txt` by `go test ./experiments -update`" + `; a test compares them.

* **same**: the same traffic, from a tool that sends the same packets, over the same kind of path, between the same kind of ends. The machine,
  versions, the length of trials, and runc instead of Docker or lxc make no difference as long as only packets are measured.
* **differs**: something else is measured. The row carries the mark ` + "`differs`" + ` and this line, in every table, page and JSON document.
* **measured nothing**: the source describes, plans or lists.
* **not run**: no machine measures the row yet.
`

func groupsOf(t *testing.T, lines []*sourceLine, e *experiment.Experiment) []*group {
	var groups []*group
	for _, r := range e.Rows {
		if r.Published == "" && r.Differs == "" {
			continue
		}
		l := lineOf(t, lines, e.Name+"/"+r.Name)
		if l == nil {
			continue // reported by another test
		}
		at := slices.IndexFunc(groups, func(g *group) bool { return g.line == l && g.differs == r.Differs })
		if at < 0 {
			at, groups = len(groups), append(groups, &group{line: l, differs: r.Differs})
		}
		here := "`" + r.Cell.String() + "`: " + strings.ReplaceAll(string(r.Figure), "_", " ")
		if r.NotRun != "" {
			here = "– (" + r.NotRun + ")"
		}
		groups[at].rows, groups[at].cells = append(groups[at].rows, "`"+r.Name+"`"), append(groups[at].cells, here)
	}
	return groups
}

func (g *group) verdict() string {
	switch g.line.word {
	case differs:
		return "differs: " + g.differs
	case nothing:
		return "measured nothing"
	case notRun:
		return "not run"
	}
	return same
}

func TestSourcesPageIsCurrent(t *testing.T) {
	const file = "../docs/sources.md"
	want := sourcesPage(t)
	if *update {
		if err := os.WriteFile(file, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := os.ReadFile(file); err != nil || string(got) != want {
		t.Errorf("docs/sources.md is stale (%v): run `go test ./experiments -update`", err)
	}
}
