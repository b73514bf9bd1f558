// SPDX-License-Identifier: Apache-2.0

package report

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/drayage/dray/internal/result/record"
	"github.com/drayage/dray/internal/spec/chain"
	"github.com/drayage/dray/internal/spec/experiment"
	"github.com/drayage/dray/internal/spec/inventory"
	"github.com/drayage/dray/test/testenv"
)

// experimentFixture is a directory of one experiment with stored records.
type experimentFixture struct {
	dir    string
	run    ExperimentsRun
	trials []record.Trial
}

func cellOf(transport string) experiment.Cell {
	return experiment.Cell{Tool: experiment.ToolTCP, Transport: transport, Runtime: chain.RuntimeRunc}
}

func measuredRow(name string, published float64) experiment.Row {
	r := experiment.Row{Name: name, Title: "TCP over " + name, Figure: "throughput", Cell: cellOf(name), Value: published}
	if published > 0 {
		r.Published = fmt.Sprintf("%g Mb/s", published)
	}
	return r
}

func newExperiments(t *testing.T) *experimentFixture {
	t.Helper()
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	return &experimentFixture{dir: t.TempDir(), run: ExperimentsRun{
		Schema: ExperimentsSchema, ID: "x", Profile: "quick", Rounds: 6, Trial: time.Second, Started: at, Finished: at.Add(time.Minute),
		Seed: 5, Program: Program{Dray: "v0"}, Host: inventory.Host{CPUModel: "CPU", CPUs: []int{0, 1}, Kernel: "6"},
		Skipped: map[string]string{cellOf("ovs").String(): "no ovs-vswitchd"},
		Experiments: []experiment.Experiment{{
			Name: "x-fig1", Title: "A figure", Source: "X: a paper, figure 1", Notes: []string{"X contradicts itself"},
			Rows: []experiment.Row{
				measuredRow("bridge", 100), measuredRow("veth", 0), measuredRow("ovs", 90),
				{Name: "nic", Title: "A NIC", Published: "10 Gb/s", NotRun: "it needs a NIC"},
			},
			Claims: []experiment.Claim{
				{Text: "bridge below veth", Page: "p. 7", Less: experiment.RowNames{"bridge"}, Than: experiment.RowNames{"veth"}}, {Text: "veth below bridge", Less: experiment.RowNames{"veth"}, Than: experiment.RowNames{"bridge"}},
				{Text: "bridge below ovs", Less: experiment.RowNames{"bridge"}, Than: experiment.RowNames{"ovs"}},
			},
		}},
	}}
}

// add adds a trial of a transport in each round, with those values.
func (f *experimentFixture) add(transport string, marks []string, values ...float64) {
	for round, v := range values {
		c := cellOf(transport).String()
		f.trials = append(f.trials, record.Trial{
			Schema: record.Schema, Run: "x", ID: fmt.Sprintf("%s-r%d", c, round), Round: round, Marks: marks, Start: f.run.Started,
			Experiment: &record.Experiment{Cell: c, Values: map[string]float64{"throughput": v}},
		})
	}
}

func (f *experimentFixture) load(t *testing.T) *ExperimentsData {
	t.Helper()
	text, err := json.Marshal(f.run)
	testenv.Must(t, err)
	testenv.Must(t, os.WriteFile(filepath.Join(f.dir, ExperimentsFile), text, 0o644))
	w, err := record.Create(filepath.Join(f.dir, RecordsFile))
	testenv.Must(t, err)
	for _, trial := range f.trials {
		testenv.Must(t, w.Write(trial))
	}
	testenv.Must(t, w.Close())
	d, err := LoadExperiments(f.dir)
	testenv.Must(t, err)
	d.Dir = "DIR"
	return d
}

func goodExperiments(t *testing.T) *experimentFixture {
	f := newExperiments(t)
	f.run.Experiments[0].Rows[0].Differs = "another tool"
	f.add("bridge", []string{}, 90, 91, 92, 90, 91, 89)
	f.add("veth", []string{record.MarkOversubscribed}, 180, 185, 178, 182, 181, 183)
	return f
}

// The page and the text state the limits of machine and generator, not those of an
// emulated machine.
func TestExperimentsSayTheirErrorBudget(t *testing.T) {
	f := goodExperiments(t)
	for i, ring := range []float64{100e6, 120e6, 1e6} {
		f.trials[i].Bench = &record.Bench{
			Limit: &record.Limit{Ring: ring, Line: ring / 1e6}, Ceiling: &record.Ceiling{Send: ring / 4, Receive: ring / 5},
		}
	}
	f.trials[2].Marks = []string{record.MarkEmulated}
	f.run.NoLimit = "no dray-limit"
	d := f.load(t)
	var text, page bytes.Buffer
	testenv.Must(t, errors.Join(d.Document().Text(&text, 0), d.Document().HTML(&page)))
	for _, want := range []string{
		"a bare ring passed 100 Mpps to 120 Mpps at 64 B, a cache-line round trip took 100 to 120 ns",
		"25.0 Mpps to 30.0 Mpps sending and 20.0 Mpps to 24.0 Mpps receiving, without a port",
		"Some rows lack the current physical limit: no dray-limit.",
	} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("the text has no %q", want)
		}
		if !strings.Contains(page.String(), want) {
			t.Errorf("the page has no %q", want)
		}
	}
}

func TestExperimentsTextGolden(t *testing.T) {
	var b bytes.Buffer
	testenv.Must(t, goodExperiments(t).load(t).Document().Text(&b, 0))
	golden(t, "experiment.txt", b.Bytes())
}

func TestExperimentsPageGolden(t *testing.T) {
	var b bytes.Buffer
	testenv.Must(t, goodExperiments(t).load(t).Document().HTML(&b))
	page := b.String()
	start, end := strings.Index(page, "<main>"), strings.Index(page, `<section id="machine"`)
	if start < 0 || end < start {
		t.Fatal("the page has no table")
	}
	golden(t, "experiment.html", []byte(page[start:end]))
	for _, href := range strings.Split(page, `href="#`)[1:] {
		id, _, _ := strings.Cut(href, `"`)
		if !strings.Contains(page, `id="`+id+`"`) {
			t.Errorf("a link points to %s, which does not exist", id)
		}
	}
}

func TestExperimentsPageEscapes(t *testing.T) {
	f := goodExperiments(t)
	f.run.Experiments[0].Title = "<script>alert(1)</script>"
	f.trials[0].Raw = "</pre><script>alert(2)</script>"
	var b bytes.Buffer
	testenv.Must(t, f.load(t).Document().HTML(&b))
	if strings.Contains(b.String(), "<script>") {
		t.Error("text of a file is interpreted as HTML")
	}
}

func TestClaims(t *testing.T) {
	five, double := []float64{10, 11, 10, 12, 11}, []float64{20, 21, 19, 22, 20}
	var here [2]chain.VMKernel
	for name, c := range map[string]struct {
		bridge, veth []float64
		marks        []string
		lab          [2]chain.VMKernel
		want         string
	}{
		"held":          {five, double, nil, here, ClaimHeld},
		"not held":      {double, five, nil, here, ClaimNotHeld},
		"noise":         {five, []float64{11, 10, 12, 10, 11}, nil, here, ClaimUndecided},
		"four pairs":    {five[:4], double[:4], nil, here, ClaimUndecided},
		"emulated":      {five, double, []string{record.MarkEmulated}, here, ClaimUndecided},
		"not run":       {five, nil, nil, here, ClaimUndecided},
		"zero measured": {[]float64{0, 11, 10, 12, 11}, double, nil, here, ClaimUndecided},
		"one in a lab":  {five, double, []string{record.MarkLab}, [2]chain.VMKernel{"", chain.VMKernelGeneric}, ClaimUndecided},
		"one guest":     {five, double, []string{record.MarkLab}, [2]chain.VMKernel{chain.VMKernelRT, chain.VMKernelRT}, ClaimHeld},
		"two guests":    {five, double, []string{record.MarkLab}, [2]chain.VMKernel{chain.VMKernelGeneric, chain.VMKernelRT}, ClaimUndecided},
	} {
		t.Run(name, func(t *testing.T) {
			f := newExperiments(t)
			marks := []string{}
			if c.lab[0] != "" {
				marks = []string{record.MarkLab}
			}
			f.run.Lab = map[string]chain.VMKernel{}
			for i, transport := range []string{"bridge", "veth"} {
				if c.lab[i] != "" {
					f.run.Lab[cellOf(transport).String()] = c.lab[i]
				}
			}
			f.add("bridge", marks, c.bridge...)
			f.add("veth", append([]string{}, c.marks...), c.veth...)
			d := f.load(t)
			got := d.Claims(&d.Run.Experiments[0])[0]
			if got.Word != c.want || got.Why == "" {
				t.Errorf("%s (%s), want %s", got.Word, got.Why, c.want)
			}
			if strings.Join(got.Marks, " ") != strings.Join(c.marks, " ") {
				t.Errorf("marks %v, those of its rows are %v", got.Marks, c.marks)
			}
		})
	}
}

// Two figures are the same only if the whole interval says so.
func TestClaimsOfTheSame(t *testing.T) {
	ten := []float64{10, 10.1, 10, 9.9, 10, 10}
	for want, other := range map[string][]float64{
		ClaimHeld:      {10.1, 10, 10, 10, 10.1, 9.9},
		ClaimNotHeld:   {20, 21, 19, 22, 20, 20},
		ClaimUndecided: {6, 14, 10, 8, 12, 10},
	} {
		f := newExperiments(t)
		f.run.Experiments[0].Claims = []experiment.Claim{{Text: "no effect", Same: []string{"bridge", "veth"}, Within: 0.1}}
		f.add("bridge", []string{}, ten...)
		f.add("veth", []string{}, other...)
		d := f.load(t)
		if got := d.Claims(&d.Run.Experiments[0])[0]; got.Word != want || !strings.Contains(got.Why, "the same: 0.909…1.1") {
			t.Errorf("%s (%s), want %s", got.Word, got.Why, want)
		}
	}
}

// Rows without a measurement are reported, never omitted.
func TestRowsWithoutAFigureSayWhy(t *testing.T) {
	f := newExperiments(t)
	f.trials = append(f.trials, record.Trial{ID: "f", Run: "x", Error: "no route", Marks: []string{}, Experiment: &record.Experiment{Cell: cellOf("bridge").String()}})
	d := f.load(t)
	lines := d.Lines(&d.Run.Experiments[0])
	for i, want := range []string{"no route", "the run ended before it", "no ovs-vswitchd", "it needs a NIC"} {
		if lines[i].NotRun != want || lines[i].Measured != nil {
			t.Errorf("%s: %q, want %q", lines[i].Row, lines[i].NotRun, want)
		}
	}
}

func TestEmulatedFiguresHaveNoRatio(t *testing.T) {
	for marks, want := range map[string]bool{record.MarkEmulated: false, record.MarkLab: true} {
		f := newExperiments(t)
		f.add("bridge", []string{marks}, 90, 91)
		d := f.load(t)
		if l := d.Lines(&d.Run.Experiments[0])[0]; (l.Ratio != nil) != want || l.Measured == nil {
			t.Errorf("%s: %+v", marks, l)
		}
	}
}

// A time under a missed load is rejected; a received rate is not, nor is a count of sessions.
func TestMissedLoadsAreRejected(t *testing.T) {
	for figure, want := range map[experiment.Figure]int{"latency_mean": 1, "packets_lost": 1, "packet_rate": 2, "sessions_lost": 2} {
		f := newExperiments(t)
		f.run.Experiments[0].Rows[0].Figure = figure
		for round, marks := range [][]string{{}, {record.MarkLoadMissed}} {
			f.trials = append(f.trials, record.Trial{ID: fmt.Sprint(round), Run: "x", Round: round, Marks: marks,
				Experiment: &record.Experiment{Cell: cellOf("bridge").String(), Values: map[string]float64{string(figure): 7}}})
		}
		d := f.load(t)
		if l := d.Lines(&d.Run.Experiments[0])[0]; l.N != want || (l.Failed == "") != (want == 2) {
			t.Errorf("%s: %+v", figure, l)
		}
	}
}

// A check failing in one of five rounds does not hold; one never decided has its
// reason.
func TestChecksHoldInEveryRound(t *testing.T) {
	for want, values := range map[string][]float64{"holds": {1, 1, 1}, "does not hold": {1, 0, 1}, "not run here: one CPU": nil} {
		f := newExperiments(t)
		f.run.Experiments[0].Rows[0].Figure = "hides_cpus"
		c := cellOf("bridge").String()
		for round, v := range values {
			f.trials = append(f.trials, record.Trial{ID: fmt.Sprint(round), Run: "x", Round: round, Marks: []string{}, Experiment: &record.Experiment{Cell: c, Values: map[string]float64{"hides_cpus": v}}})
		}
		if values == nil {
			f.trials = append(f.trials, record.Trial{ID: "n", Run: "x", Marks: []string{}, Experiment: &record.Experiment{Cell: c, Why: map[string]string{"hides_cpus": "one CPU"}}})
		}
		d := f.load(t)
		l := d.Lines(&d.Run.Experiments[0])[0]
		if got := l.measuredText(); got != want || l.Ratio != nil || l.Low != nil {
			t.Errorf("%q, want %q: %+v", got, want, l)
		}
	}
}

func TestMaximaAreNotAveraged(t *testing.T) {
	f := newExperiments(t)
	f.run.Experiments[0].Rows[0].Figure = "latency_max"
	for round, v := range []float64{3, 9, 4} {
		c := cellOf("bridge").String()
		f.trials = append(f.trials, record.Trial{ID: fmt.Sprint(round), Run: "x", Round: round, Marks: []string{}, Experiment: &record.Experiment{Cell: c, Values: map[string]float64{"latency_max": v}}})
	}
	d := f.load(t)
	if l := d.Lines(&d.Run.Experiments[0])[0]; l.Measured == nil || *l.Measured != 9 || l.Low != nil {
		t.Errorf("%+v", l)
	}
}

// The page shows the source of a record's figures, however long its histograms are.
func TestRecordOnThePage(t *testing.T) {
	trial := record.Trial{ID: "frames", OneWay: &record.OneWay{}, Env: record.Environment{Kernel: "6.18"}}
	for i := range int64(5000) {
		trial.OneWay.Latency.Counts = append(trial.OneWay.Latency.Counts, record.BucketCount{Value: 1 + i, Count: 1})
	}
	r := recordOf(1, trial)
	if !strings.Contains(r.JSON, `"environment"`) || strings.Contains(r.JSON, "more bytes") {
		t.Errorf("the record is truncated: %.300s", r.JSON)
	}
	if len(trial.OneWay.Latency.Counts) != 5000 {
		t.Error("the trial itself has lost its buckets")
	}
}
