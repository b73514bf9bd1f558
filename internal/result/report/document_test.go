// SPDX-License-Identifier: Apache-2.0

package report

import (
	"bytes"
	"encoding/base64"
	"encoding/csv"
	"encoding/json"
	"encoding/xml"
	"errors"
	"html"
	"io"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/drayage/dray/internal/result/record"
	"github.com/drayage/dray/internal/result/report/document"
	"github.com/drayage/dray/internal/result/report/plot"
	"github.com/drayage/dray/test/testenv"
)

var exports = regexp.MustCompile(`download="([^"]+)" href="data:([^"]+?);base64,([^"]+)"`)

// Each figure can be saved: its numbers as CSV, its drawing as standalone SVG.
func TestFiguresAreExported(t *testing.T) {
	text := page(t, bad())
	files := map[string]string{}
	for _, m := range exports.FindAllStringSubmatch(text, -1) {
		b, err := base64.StdEncoding.DecodeString(html.UnescapeString(m[3]))
		testenv.Must(t, err)
		files[m[1]] = string(b)
	}
	if len(files) != 2*7 {
		t.Errorf("%d files", len(files))
	}
	for name, content := range files {
		switch {
		case strings.HasSuffix(name, ".csv"):
			rows, err := csv.NewReader(strings.NewReader(content)).ReadAll()
			if err != nil || len(rows) < 3 {
				t.Errorf("%s: %d rows, %v", name, len(rows), err)
			}
		default:
			wellFormed(t, name, content)
			if strings.Contains(content, "var(--") || strings.Contains(content, "<a ") || !strings.Contains(content, "#1c5aa6") {
				t.Errorf("%s has no colours of its own, or links into the page", name)
			}
		}
	}
	for name, want := range map[string]string{
		"delay-cu-up-f1u-du-f1u.csv": "\"one way, 302Mbps\",99,95935\n", "tcp-goodput-link-n3.csv": "at least 4Gbps,limit,4000000000\n", "delay-cu-up-f1u-du-f1u.svg": "<style>",
	} {
		if !strings.Contains(files[name], want) {
			t.Errorf("%s has no %q:\n%.300s", name, want, files[name])
		}
	}
}

func wellFormed(t *testing.T, name, content string) {
	t.Helper()
	d := xml.NewDecoder(strings.NewReader(content))
	for first := true; ; first = false {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			t.Errorf("%s: %v", name, err)
			return
		}
		if e, ok := token.(xml.StartElement); first && (!ok || e.Name != xml.Name{Space: "http://www.w3.org/2000/svg", Local: "svg"}) {
			t.Errorf("%s begins with %v", name, token)
		}
	}
}

func figuresOf(s document.Section) []document.Figure {
	var out []document.Figure
	for _, b := range s.Blocks {
		out = append(out, b.Figures...)
	}
	return out
}

// Both directions of a link share one scale, even if one is much slower.
func TestDirectionsShareAScale(t *testing.T) {
	f := newFixture()
	for round := range 3 {
		f.stream(f.trial("f1u", record.QStream, "cu-up.f1u", "du.f1u", round), uint64(f.plan.Links[0].Load), 20*time.Microsecond, 0, 1000, 0)
		f.stream(f.trial("f1u", record.QStream, "du.f1u", "cu-up.f1u", round), uint64(f.plan.Links[0].Load), 2*time.Millisecond, 0, 1000, 0)
	}
	var scales [][2]float64
	for _, s := range f.load(t).Document().Sections {
		for _, fig := range figuresOf(s) {
			if p, ok := fig.Plot.(plot.Percentiles); ok && s.ID == "link-1" {
				scales = append(scales, [2]float64{p.From, p.To})
			}
		}
	}
	if len(scales) != 2 || scales[0] != scales[1] || scales[0][0] > 20e3 || scales[0][1] < 2e6 {
		t.Errorf("scales %v", scales)
	}
}

// Noisy rates have an interval above 0, around their mean.
func TestIntervalsOfRatesStayAboveZero(t *testing.T) {
	mean, low, high := meanOf([]float64{1e6, 9e6, 2e6})
	if mean != 4e6 || !(*low > 0 && *low < mean && *high > mean) {
		t.Errorf("%g (%g … %g)", mean, *low, *high)
	}
	if _, low, high = meanOf([]float64{0, 9e6, 2e6}); *low != 0 || !(*high > 9e6) {
		t.Errorf("with a trial of 0: %g … %g", *low, *high)
	}
	if mean, low, high = meanOf([]float64{7}); mean != 7 || low != nil || high != nil {
		t.Errorf("one trial has an interval: %g, %v, %v", mean, low, high)
	}
}

// An unreadable setting is shown as unknown; the error stays in the records.
func TestNoErrorTextInTheEnvironment(t *testing.T) {
	f := good()
	for i := range f.trials {
		f.trials[i].Env.Offloads = map[string]string{"cu-up.f1u": "unknown: ethtool: no such device"}
	}
	text := page(t, f)
	_, environment, _ := strings.Cut(text, `<section id="machine"`)
	environment, records, _ := strings.Cut(environment, `<section id="records"`)
	if strings.Contains(environment, "no such device") || !strings.Contains(environment, "cu-up.f1u: unknown") || !strings.Contains(records, "no such device") {
		t.Errorf("the environment: %.1500s", environment)
	}
}

// Plan warnings are folded below the verdicts; an interruption is above everything.
func TestWarningsAreFoldedAndInterruptionsAreNot(t *testing.T) {
	f := bad()
	f.run.Finished = time.Time{}
	text := page(t, f)
	last := 0
	for _, want := range []string{`<p class="banner" role="alert">Not finished: this report uses the 51 records`, `id="h-verdicts"`, "<summary>1 warning</summary>", "on_infeasible is warn", `id="h-topology"`} {
		at := strings.Index(text, want)
		if at < last {
			t.Errorf("%q is at %d, want after %d", want, at, last)
		}
		last = at
	}
	var b bytes.Buffer
	bench := newBench(t)
	bench.run.Finished = time.Time{}
	testenv.Must(t, bench.load(t).Document().Text(&b, 80))
	if strings.Count(b.String(), "was interrupted") != 1 || strings.Index(b.String(), "was interrupted") > strings.Index(b.String(), "TRANSPORT") {
		t.Errorf("the interruption is not first, or occurs more than once:\n%s", b.String())
	}
}

// Every kind of report states the version of its data for programs.
func TestEveryReportHasASchema(t *testing.T) {
	for name, d := range map[string]*document.Document{
		"run": good().load(t).Document(), "bench": newBench(t).load(t).Document(), "experiments": goodExperiments(t).load(t).Document(),
	} {
		var b bytes.Buffer
		var out struct{ Schema int }
		if err := errors.Join(d.JSON(&b), json.NewDecoder(&b).Decode(&out)); err != nil || out.Schema < 1 {
			t.Errorf("%s: schema %d, %v", name, out.Schema, err)
		}
	}
}
