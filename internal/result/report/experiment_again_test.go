// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"strings"
	"testing"

	"github.com/drayage/dray/internal/result/record"
)

// Second trials of a round show the noise, and do not count for the row.
func TestAgainTellsTheNoise(t *testing.T) {
	f := goodExperiments(t)
	load := func() *ExperimentsData {
		f.dir = t.TempDir()
		return f.load(t)
	}
	before := load()
	if s := before.noise(); !strings.HasPrefix(s, "no row was measured twice") {
		t.Error(s)
	}
	again := func(round int, v float64) record.Trial {
		t := f.trials[round]
		t.ID, t.Round = fmt.Sprintf("again-%d", round), round
		t.Experiment = &record.Experiment{Cell: t.Experiment.Cell + Again, Values: map[string]float64{"throughput": v}}
		return t
	}
	line := before.Lines(&before.Run.Experiments[0])[0]
	f.trials = append(f.trials, again(0, 90))
	if s := load().noise(); !strings.Contains(s, "tcp/bridge/runc (throughput) twice in each round: ") || strings.Contains(s, "distinguish a difference") {
		t.Errorf("one pair: %s", s)
	}
	for round, v := range []float64{91, 92, 91, 91, 90} {
		f.trials = append(f.trials, again(round+1, v))
	}
	d := load()
	// The first trials are 90, 91, 92, 90, 91 and 89.
	const want = "tcp/bridge/runc (throughput) twice in each round: ratio 0.996 (0.990 … 1.002) in 6 pairs; 6 pairs distinguish a difference of × 1.01 from noise with a probability of 80 %"
	if s := d.noise(); s != want {
		t.Errorf("got  %s\nwant %s", s, want)
	}
	if after := d.Lines(&d.Run.Experiments[0])[0]; after.N != line.N || *after.Measured != *line.Measured {
		t.Errorf("the row has %d trials, %g, and had %d, %g", after.N, *after.Measured, line.N, *line.Measured)
	}
	var page, text strings.Builder
	if err := d.Document().HTML(&page); err != nil || !strings.Contains(page.String(), "in 6 pairs") {
		t.Errorf("the page does not say it: %v", err)
	}
	if err := d.Document().Text(&text, 100); err != nil || !strings.Contains(strings.Join(strings.Fields(text.String()), " "), "A/A: "+want) {
		t.Errorf("the text does not say it: %v", err)
	}
}
