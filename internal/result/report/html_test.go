// SPDX-License-Identifier: Apache-2.0

package report

import (
	"bytes"
	"regexp"
	"strings"
	"testing"

	"github.com/drayage/dray/internal/plan"
	"github.com/drayage/dray/internal/result/record"
	"github.com/drayage/dray/test/testenv"
)

func page(t *testing.T, f *fixture) string {
	t.Helper()
	var b bytes.Buffer
	testenv.Must(t, f.load(t).Document().HTML(&b))
	return b.String()
}

// elsewhere finds external resources, and scripts of any kind.
var elsewhere = regexp.MustCompile(`(?i)(?:src|srcset|data|poster|action|background)\s*=\s*["']?[a-z/]|url\(|@import|<(?:script|link|iframe|object|embed|img|form|base)\b|\son\w+\s*=|javascript:`)

var (
	hrefs = regexp.MustCompile(`href="([^"]*)"`)
	ids   = regexp.MustCompile(`\sid="([^"]*)"`)
	// exported is a file embedded in a link of the page.
	exported = regexp.MustCompile(`^data:(text/csv|image/svg&#43;xml);base64,[A-Za-z0-9/+=&#;]+$`)
)

func TestPageIsSelfContained(t *testing.T) {
	html := page(t, bad())
	if strings.Contains(html, "://") {
		t.Error("the page holds an address")
	}
	if m := elsewhere.FindString(html); m != "" {
		t.Errorf("the page reaches out, or runs something: %q", m)
	}
	for _, m := range hrefs.FindAllStringSubmatch(html, -1) {
		if !strings.HasPrefix(m[1], "#") && !exported.MatchString(m[1]) {
			t.Errorf("the page links to %q", m[1])
		}
	}
}

// Every link has a target, and no id occurs twice.
func TestPageLinksLeadSomewhere(t *testing.T) {
	html := page(t, bad())
	known := map[string]bool{}
	for _, m := range ids.FindAllStringSubmatch(html, -1) {
		if known[m[1]] {
			t.Errorf("id %q occurs twice", m[1])
		}
		known[m[1]] = true
	}
	n := 0
	for _, m := range hrefs.FindAllStringSubmatch(html, -1) {
		if exported.MatchString(m[1]) {
			continue
		}
		n++
		if !known[strings.TrimPrefix(m[1], "#")] {
			t.Errorf("%q has no target", m[1])
		}
	}
	if n < 100 {
		t.Errorf("%d links: the figures do not lead to their records", n)
	}
}

func TestEveryFigureNamesItsRecords(t *testing.T) {
	html := page(t, bad())
	figures := strings.Split(html, "<figure>")[1:]
	if len(figures) != 7 {
		t.Errorf("%d figures, want one of all links, and two latency plots and one bar plot for each of two", len(figures))
	}
	for _, f := range figures {
		f, _, _ = strings.Cut(f, "</figure>")
		if !strings.Contains(f, `<a class="ref" href="#rec-`) || !strings.Contains(f, "<title") {
			t.Errorf("a figure without records or title: %.200s", f)
		}
	}
}

func TestVerdictsStandFirst(t *testing.T) {
	html := page(t, bad())
	last := 0
	for _, want := range []string{"3 missed, 2 not measurable, 5 met", `id="h-verdicts"`, `id="h-topology"`, `id="h-compared"`, `id="link-1"`, `id="link-4"`, `id="h-machine"`, `id="h-records"`} {
		at := strings.Index(html, want)
		if at < last {
			t.Errorf("%q is at %d, want after %d", want, at, last)
		}
		last = at
	}
	for _, word := range []string{"✓</span> met", "✕</span> missed", "?</span> not measurable"} {
		if !strings.Contains(html, word) {
			t.Errorf("no %q: colour alone would carry the verdict", word)
		}
	}
}

// A quantile that the samples do not support is neither printed nor drawn.
func TestRefusedQuantilesAreNotDrawn(t *testing.T) {
	f := newFixture()
	for range 3 {
		f.stream(f.trial("f1u", record.QStream, "cu-up.f1u", "du.f1u", 0), uint64(f.plan.Links[0].Load), 1000, 0, 100, 0)
	}
	html := page(t, f)
	if !strings.Contains(html, "p90 ") || strings.Contains(html, "<title>one way, 302Mbps: p99 ") {
		t.Error("300 samples support p90 and not p99")
	}
}

const hostile = `"><script>alert(1)</script><img src=x onerror=alert(2)>'` + "`${7}"

// Any content of a chain, a plan or a record is text on the page.
func TestHostileTextIsEscaped(t *testing.T) {
	f := bad()
	f.run.Chain, f.run.ID, f.run.Dray = hostile, hostile, hostile
	f.run.Phases[0].Name = hostile
	f.plan.Functions[0].Reason, f.plan.Links[0].Reason, f.plan.Links[0].Transport = hostile, hostile, hostile
	f.plan.Links[0].Rejected = []plan.Rejected{{Transport: hostile, Reason: hostile}}
	f.run.Links[0].Engine, f.run.Links[0].Qdiscs = hostile, map[string]string{hostile: hostile}
	for i := range f.plan.Links {
		f.plan.Links[i].Name += hostile
		f.plan.Links[i].Ends[0].Port += hostile
		f.plan.Links[i].Ends[0].Function += hostile
	}
	for i := range f.trials {
		tr := &f.trials[i]
		tr.Run, tr.ID, tr.Link = f.run.ID, tr.ID+hostile, tr.Link+hostile
		tr.Raw, tr.Error, tr.Marks = hostile, hostile, []string{hostile}
		tr.Env.Kernel, tr.Instrument.Client = hostile, []string{hostile}
		if strings.HasPrefix(tr.From, "cu-up.") {
			tr.From += hostile
		}
	}
	html := page(t, f)
	for _, bad := range []string{"<script", "<img"} {
		if strings.Contains(html, bad) {
			t.Errorf("%q reaches the page as markup", bad)
		}
	}
	if !strings.Contains(html, "&lt;script&gt;alert(1)") {
		t.Error("the hostile text is not on the page at all: this tests nothing")
	}
}

func TestRawOutputIsCut(t *testing.T) {
	f := good()
	f.trials[0].Raw = strings.Repeat("é", maxRaw)
	html := page(t, f)
	if strings.Count(html, "é") > maxRaw/2 || !strings.Contains(html, "4000 more bytes are in records.jsonl") {
		t.Error("raw output is not cut, or does not say so")
	}
	if cut("aé", 2) != "a\n… 2 more bytes are in records.jsonl" {
		t.Errorf("cut within a rune: %q", cut("aé", 2))
	}
}

// A deep chain, many links and functions without links are drawn too.
func TestTopologyOfManyShapes(t *testing.T) {
	f := newFixture()
	f.plan.Links = nil
	for i := range 12 {
		name := string(rune('a' + i))
		f.plan.Functions = append(f.plan.Functions, plan.Function{Name: name})
		f.plan.Links = append(f.plan.Links, plan.Link{Name: "l" + name, Ends: []plan.End{{Function: name, Port: "x"}, {Function: string(rune('a' + (i+1)%12)), Port: "y"}}})
	}
	f.plan.Links = append(f.plan.Links, plan.Link{Name: "up", Ends: []plan.End{{Uplink: "eth0"}, {Uplink: "eth1"}}})
	d := f.load(t)
	topo := d.topologyOf(nil)
	nodes := 0
	for _, layer := range topo.layers {
		nodes += len(layer)
	}
	if want := 14 + 13 + 2; nodes != want || len(topo.edges) != 26 {
		t.Errorf("%d boxes and %d edges, want %d and 26", nodes, len(topo.edges), want)
	}
	for _, e := range topo.edges {
		if d := e.end.layer - e.link.layer; d%2 == 0 {
			t.Errorf("%s and %s are in layers %d and %d", e.end.title, e.link.title, e.end.layer, e.link.layer)
		}
	}
	if svg := string(topo.wide()); !strings.Contains(svg, "function cu-up") || strings.Contains(svg, "NaN") || strings.Contains(svg, "Inf") {
		t.Error("the drawing lacks a function, or holds no numbers")
	}
}

// A chain may join host interfaces only.
func TestTopologyWithoutFunctions(t *testing.T) {
	d := &Data{Plan: plan.Plan{Links: []plan.Link{{Name: "up", Ends: []plan.End{{Uplink: "eth0"}, {Uplink: "eth1"}}}}}}
	topo := d.topologyOf(nil)
	if svg := string(topo.wide() + topo.narrow()); !strings.Contains(svg, "link up") || strings.Contains(svg, "NaN") {
		t.Errorf("the drawing is %s", svg)
	}
}
