// SPDX-License-Identifier: Apache-2.0

package report

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/drayage/dray/internal/plan"
	"github.com/drayage/dray/internal/result/record"
	"github.com/drayage/dray/internal/result/verdict"
	"github.com/drayage/dray/internal/spec/chain"
	"github.com/drayage/dray/test/testenv"
)

func TestLoadJudges(t *testing.T) {
	d := good().load(t)
	if len(d.Verdicts) != 5 || d.ExitCode() != 0 || len(d.Trials) != 25 || d.ChainText != chainText {
		t.Errorf("%d verdicts, exit code %d, %d trials; want 5, 0, 25", len(d.Verdicts), d.ExitCode(), len(d.Trials))
	}
	if code := bad().load(t).ExitCode(); code != 4 {
		t.Errorf("exit code %d with missed requirements, want 4", code)
	}
}

func TestLoadWithoutOptionalFiles(t *testing.T) {
	dir := good().dir(t)
	for _, name := range []string{InventoryFile, ChainFile} {
		testenv.Must(t, os.Remove(filepath.Join(dir, name)))
	}
	d, err := Load(dir)
	if err != nil || d.Inventory != nil || d.ChainText != "" {
		t.Errorf("without the optional files: %v", err)
	}
}

// The verdicts of paths are next to those of links, and their sections name what is between.
func TestLoadJudgesPaths(t *testing.T) {
	f := good()
	from, to := chain.End{Function: "cu-up", Port: "f1u"}, chain.End{Function: "du", Port: "f1u"}
	f.plan.Paths = []plan.Path{{
		Name: "dl", From: from, To: to, Steps: []chain.Step{{Link: "f1u", Out: from, In: to}}, Directions: chain.DirectionsForward,
		Requires: chain.Requires{MinBitrate: 100}, Terms: []plan.Term{{Link: "f1u", Latency: 7000, Percentile: 99.5, Source: "stated default"}},
	}}
	for round := range 3 {
		trial := f.trial("dl", record.QThroughput, from.String(), to.String(), round)
		trial.Throughput = &record.Throughput{Traffic: "udp", BitsPerSecond: uint64(110 + round), Intervals: []uint64{}}
	}
	d := f.load(t)
	last := d.Verdicts[len(d.Verdicts)-1]
	if last.Link != "dl" || !last.Path || last.Verdict != verdict.Met || len(last.Directions) != 1 {
		t.Errorf("%+v", last)
	}
	var out bytes.Buffer
	testenv.Must(t, d.Document().HTML(&out))
	for _, want := range []string{"Link or path", "Path dl", "from cu-up.f1u to du.f1u", "expected within 7us at p99.5"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the page has no %q", want)
		}
	}
}

// A killed run leaves half a record: it is reported, but not fatal.
func TestLoadTornRecord(t *testing.T) {
	dir := good().dir(t)
	path := filepath.Join(dir, RecordsFile)
	b, err := os.ReadFile(path)
	testenv.Must(t, err)
	write(t, dir, RecordsFile, b[:len(b)-20])
	d, err := Load(dir)
	testenv.Must(t, err)
	if len(d.Trials) != 24 || len(d.Warnings) != 1 {
		t.Errorf("%d trials and warnings %q, want 24 and one", len(d.Trials), d.Warnings)
	}
}

// Each malformed or hostile directory causes an error that names the file.
func TestLoadRefuses(t *testing.T) {
	record := func(edit func(string) string) func(t *testing.T, dir string) {
		return func(t *testing.T, dir string) {
			b, err := os.ReadFile(filepath.Join(dir, RecordsFile))
			testenv.Must(t, err)
			write(t, dir, RecordsFile, []byte(edit(string(b))))
		}
	}
	file := func(name, text string) func(t *testing.T, dir string) {
		return func(t *testing.T, dir string) { write(t, dir, name, []byte(text)) }
	}
	cases := map[string]struct {
		spoil func(t *testing.T, dir string)
		want  string
	}{
		"no run.json":  {func(t *testing.T, dir string) { os.Remove(filepath.Join(dir, RunFile)) }, "run.json"},
		"run no JSON":  {file(RunFile, "hello"), "run.json: invalid character"},
		"newer schema": {file(RunFile, `{"schema":99}`), "run.json: schema 99"},
		"plan no JSON": {file(PlanFile, `{"links":7}`), "plan.json"},
		"links without functions": {file(PlanFile, `{"links":[{"name":"f1u","ends":[{"function":"cu","port":"x"},{"function":"du","port":"y"}]}]}`),
			"plan.json: link f1u has an end at function \"cu\""},
		"a path without links": {file(PlanFile, `{"paths":[{"name":"dl"}]}`), "plan.json: path dl has no links"},
		"a path over no link":  {file(PlanFile, `{"paths":[{"name":"dl","steps":[{"link":"n3"}]}]}`), "path dl is over link n3, and the plan has no such link"},
		"a figure of no link":  {file(PlanFile, `{"paths":[{"name":"dl","terms":[{"link":"n3"}],"steps":[{"link":"ab"}]}],"links":[{"name":"ab"}]}`), "path dl has a figure of link n3"},
		"bad inventory":        {file(InventoryFile, `[]`), "inventory.json"},
		"no records":           {func(t *testing.T, dir string) { os.Remove(filepath.Join(dir, RecordsFile)) }, "records.jsonl"},
		"garbage line":         {record(func(s string) string { return "garbage\n" + s }), "line 1"},
		"another run":          {record(func(s string) string { return strings.Replace(s, `"run":"2026`, `"run":"1999`, 1) }), `belongs to run "1999`},
		"twice":                {record(func(s string) string { l, _, _ := strings.Cut(s, "\n"); return l + "\n" + s }), `record 2 has the same id, "t001"`},
		"no id":                {record(func(s string) string { return strings.Replace(s, `"id":"t003"`, `"id":""`, 1) }), "record 3 has no id"},
		"a directory": {func(t *testing.T, dir string) {
			os.Remove(filepath.Join(dir, PlanFile))
			testenv.Must(t, os.Mkdir(filepath.Join(dir, PlanFile), 0o755))
		}, "plan.json is not a regular file"},
		"a FIFO": {func(t *testing.T, dir string) {
			os.Remove(filepath.Join(dir, RecordsFile))
			testenv.Must(t, syscall.Mkfifo(filepath.Join(dir, RecordsFile), 0o644))
		}, "records.jsonl is not a regular file"},
		"huge": {func(t *testing.T, dir string) {
			testenv.Must(t, os.Truncate(filepath.Join(dir, ChainFile), maxFile+1))
		}, "chain.yaml is larger than"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			dir := good().dir(t)
			c.spoil(t, dir)
			if _, err := Load(dir); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want one with %q", err, c.want)
			}
		})
	}
}

func TestHeadline(t *testing.T) {
	judged := func(words ...verdict.Word) (vs []verdict.Verdict) {
		for _, w := range words {
			vs = append(vs, verdict.Verdict{Verdict: w})
		}
		return vs
	}
	for _, c := range []struct {
		vs   []verdict.Verdict
		want string
	}{
		{nil, "nothing was required"},
		{judged(verdict.Met), "the one requirement met"},
		{judged(verdict.Met, verdict.Met), "all 2 requirements met"},
		{judged(verdict.Missed), "1 missed, of 1 requirement"},
		{judged(verdict.Met, verdict.NotMeasurable, verdict.Missed), "1 missed, 1 not measurable, 1 met, of 3 requirements"},
	} {
		if got := Headline(c.vs); got != c.want {
			t.Errorf("Headline = %q, want %q", got, c.want)
		}
	}
}
