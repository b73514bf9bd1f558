// SPDX-License-Identifier: Apache-2.0

package report

import (
	"bytes"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/drayage/dray/internal/result/record"
	"github.com/drayage/dray/internal/result/report/document"
	"github.com/drayage/dray/internal/spec/chain"
	"github.com/drayage/dray/internal/spec/experiment"
	"github.com/drayage/dray/test/testenv"
)

// frame is a trial of one transport at one load, packets/s.
func (f *experimentFixture) frame(c experiment.Cell, round int, asked, sent, received uint64) {
	marks := []string{}
	if asked > 0 && sent < asked*95/100 {
		marks = []string{record.MarkLoadMissed}
	}
	f.trials = append(f.trials, record.Trial{Schema: record.Schema, Run: "x", ID: fmt.Sprintf("%s-r%d", c, round), Round: round, Marks: marks, Start: f.run.Started, Quantity: record.QFrames,
		Delivery:   &record.Delivery{OfferedRate: asked, SentRate: sent, PacketRate: received},
		Experiment: &record.Experiment{Cell: c.String(), Values: map[string]float64{"packet_rate": float64(received) / 1e3}}})
}

// sweep is an experiment with those stated loads; the last is not reached.
func sweep(t *testing.T, loads ...string) *experimentFixture {
	f := newExperiments(t)
	f.run.Experiments[0].Rows, f.run.Experiments[0].Claims = nil, nil
	for i, load := range append(loads, "max") {
		c := experiment.Cell{Tool: experiment.ToolFrames, Transport: "veth", Face: chain.FaceNetdev, Runtime: chain.RuntimeRunc, Size: 64, Load: load}
		f.run.Experiments[0].Rows = append(f.run.Experiments[0].Rows, experiment.Row{Name: load, Title: "veth, offered " + load, Figure: "packet_rate", Cell: c})
		asked := uint64(c.Offered().PacketRate)
		sent := min(asked, 5_000_000)
		if load == "max" {
			sent = 5_000_000
		}
		for round := range 2 {
			f.frame(c, round, asked, sent, sent-sent*uint64(i+round)/250)
		}
	}
	return f
}

// woken is a row of wake-up times and its trials.
func (f *experimentFixture) woken(title string, c experiment.Cell, value float64, marks ...string) {
	c.Tool = experiment.ToolCyclictest
	f.run.Experiments[0].Rows = append(f.run.Experiments[0].Rows, experiment.Row{Name: c.String(), Title: title + ": maximum", Figure: "wakeup_max", Cell: c, Value: value, Published: fmt.Sprintf("%g µs", value)})
	for round := range 2 {
		h := record.NewHDR()
		for i := range int64(2000) {
			if err := h.RecordValue((10 + i/100 + int64(round)) * 1000); err != nil {
				panic(err)
			}
		}
		f.trials = append(f.trials, record.Trial{Schema: record.Schema, Run: "x", ID: fmt.Sprintf("%s-r%d", c, round), Round: round, Marks: append([]string{}, marks...), Start: f.run.Started, Quantity: record.QWakeup,
			Latency:    &record.Latency{Histogram: record.FromHDR(h)},
			Experiment: &record.Experiment{Cell: c.String(), Values: map[string]float64{"wakeup_max": 29 + float64(round)}}})
	}
}

// drawn are the figures of the fixture's experiment.
func drawn(t *testing.T, f *experimentFixture) []document.Figure {
	t.Helper()
	for _, s := range f.load(t).Document().Sections {
		if s.ID == f.run.Experiments[0].Name {
			for _, b := range s.Blocks {
				if len(b.Figures) > 0 {
					return b.Figures
				}
			}
		}
	}
	return nil
}

func TestFiguresOfExperimentsGolden(t *testing.T) {
	f := sweep(t, "100kpps", "1Mpps", "8Mpps")
	f.woken("This kernel, host, idle", experiment.Cell{}, 20)
	f.woken("This kernel, host, under load", experiment.Cell{Stress: true}, 30, record.MarkEmulated, record.MarkLab)
	var b bytes.Buffer
	testenv.Must(t, f.load(t).Document().HTML(&b))
	page := b.String()
	start := strings.Index(page, `<div class="figures">`)
	end := strings.LastIndex(page, "</figure>")
	if start < 0 || end < start {
		t.Fatal("the page has no figure")
	}
	drawings := regexp.MustCompile(`href="data:[^"]*"`).ReplaceAllString(page[start:end], `href="data:…"`)
	golden(t, "experiment-figures.html", []byte(strings.ReplaceAll(drawings, "><", ">\n<")))
	for _, want := range []string{"4.95 Mpps received, 8.00 Mpps requested", "under load (emulated, lab), max 30us", "published 30 µs"} {
		if !strings.Contains(page, want) {
			t.Errorf("no %q in the figures", want)
		}
	}
}

// A sweep needs three loads, a comparison two rows of one figure, a curve its samples.
func TestNothingToDraw(t *testing.T) {
	few := newExperiments(t)
	few.woken("Three wake-ups", experiment.Cell{}, 0)
	few.trials = few.trials[:1]
	few.trials[0].Latency.Histogram.Counts = []record.BucketCount{{Value: 1000, Count: 3}}
	for name, f := range map[string]*experimentFixture{
		"few samples": few, "two loads": sweep(t, "1kpps", "2kpps"), "one published": goodExperiments(t), "nothing measured": newExperiments(t),
	} {
		if figures := drawn(t, f); len(figures) != 0 {
			t.Errorf("%s: %d figures, the first is %q", name, len(figures), figures[0].Title)
		}
	}
	two := goodExperiments(t)
	two.run.Experiments[0].Rows[1].Value, two.run.Experiments[0].Rows[1].Published = 150, "150 Mb/s"
	if figures := drawn(t, two); len(figures) != 1 || figures[0].Title != "Published and measured: throughput" || len(figures[0].Records) != 12 {
		t.Errorf("two rows with a published figure: %+v", figures)
	}
}

// A percentile plot has at most four curves; a kernel's rows differ by load.
func TestWakeupsOfManyRows(t *testing.T) {
	f := newExperiments(t)
	f.run.Experiments[0].Rows, f.run.Experiments[0].Claims = nil, nil
	for _, stress := range []bool{false, true} {
		load := map[bool]string{false: "idle", true: "under load"}[stress]
		f.woken("RT kernel, host, "+load, experiment.Cell{Kernel: chain.VMKernelRT, Stress: stress}, 0)
		f.woken("RT kernel, container, "+load, experiment.Cell{Kernel: chain.VMKernelRT, Runtime: chain.RuntimeRunc, Stress: stress}, 0)
		f.woken("RT kernel, VM, "+load, experiment.Cell{Kernel: chain.VMKernelRT, Runtime: chain.RuntimeVM, Stress: stress}, 0)
	}
	f.woken("This kernel, host, idle", experiment.Cell{}, 0)
	var titles []string
	for _, fig := range drawn(t, f) {
		titles = append(titles, fig.Title)
	}
	want := []string{"Wake-up latency: RT kernel, idle", "Wake-up latency: RT kernel, under load", "Wake-up latency: This kernel, host, idle"}
	if !slices.Equal(titles, want) {
		t.Errorf("%q, want %q", titles, want)
	}
}

// A row whose load was missed states the sent rate, even if the row is rejected.
func TestMissedLoadsSayWhatWasSent(t *testing.T) {
	for figure, want := range map[experiment.Figure]string{
		"packet_rate": "load missed (5.00 Mpps sent of 8.00 Mpps)", "latency_mean": "not run here: rejected: the sent rate is over 5 % off the load: 5.00 Mpps sent of 8.00 Mpps",
	} {
		f := sweep(t, "8Mpps")
		f.run.Experiments[0].Rows[0].Figure = figure
		d := f.load(t)
		var text, page bytes.Buffer
		testenv.Must(t, d.Document().Text(&text, 0))
		testenv.Must(t, d.Document().HTML(&page))
		if !strings.Contains(text.String(), want) || !strings.Contains(page.String(), "5.00 Mpps sent of 8.00 Mpps") {
			t.Errorf("%s: no %q in\n%s", figure, want, text.String())
		}
	}
	bits := record.Trial{Quantity: record.QDelivery, Marks: []string{record.MarkLoadMissed}, Delivery: &record.Delivery{OfferedBits: 95e6, SentBits: 50e6, OfferedRate: 9000, SentRate: 4000}}
	if got := sentRate([]record.Trial{bits, {Marks: []string{}}}).String(); got != "50.0 Mb/s sent of 95.0 Mb/s" {
		t.Errorf("a load in bits: %q", got)
	}
}
