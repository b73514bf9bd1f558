// SPDX-License-Identifier: Apache-2.0

package published

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/drayage/dray/internal/measure/runner"
	"github.com/drayage/dray/internal/node"
	"github.com/drayage/dray/internal/spec/chain"
	"github.com/drayage/dray/internal/spec/experiment"
	"github.com/drayage/dray/test/testenv"
)

func TestPlannedIsWhatThePlannerAccepts(t *testing.T) {
	trial, err := planned(context.Background(), &Runner{Machine: &runner.Machine{Inventory: host2()}}, nil, experiment.Cell{Tool: experiment.ToolPlanned})
	testenv.Must(t, err)
	if v := trial.Experiment.Values; v["threads"] != 2 || v["functions"] != 2 || v["memory_per_thread"] != float64(4<<30)/giga {
		t.Errorf("%v: %s", v, trial.Raw)
	}
	if trial.Raw == "" {
		t.Error("the reason why no more fit is missing")
	}
	small := host2()
	small.Host.MemoryTotal = 1 << 30
	if trial, err = planned(context.Background(), &Runner{Machine: &runner.Machine{Inventory: small}}, nil, experiment.Cell{}); err != nil || trial.Experiment.Values["functions"] != 1 {
		t.Errorf("with 1 GiB: %v, %v", trial.Experiment.Values, err)
	}
}

// Running functions, not requested ones, are counted and share the memory.
func TestDensityIsOfWhatRuns(t *testing.T) {
	up := running([]node.FunctionStatus{{Phase: node.PhaseRunning}, {Phase: node.PhaseGone}, {Phase: node.PhaseRunning}})
	got := density(3, up, 3, time.Second, 8*mega)
	if v := got.Values; up != 2 || v["functions"] != 2 || v["memory"] != 4 || v["start_time"] != 1 {
		t.Errorf("%d run: %v", up, v)
	}
	got = density(2, 0, 3, time.Minute, 8*mega)
	if _, timed := got.Values["start_time"]; timed || got.Why["start_time"] == "" || got.Why["memory"] == "" || got.Values["functions"] != 0 {
		t.Errorf("none runs: %+v", got)
	}
}

func TestSizeBelow(t *testing.T) {
	dir := t.TempDir()
	for name, length := range map[string]int{"a": 3, "deep/b": 40, "mounted/c": 500} {
		path := filepath.Join(dir, name)
		testenv.Must(t, os.MkdirAll(filepath.Dir(path), 0o755))
		testenv.Must(t, os.WriteFile(path, make([]byte, length), 0o600))
	}
	testenv.Must(t, os.Symlink("deep/b", filepath.Join(dir, "link")))
	if sum, err := sizeBelow(dir, map[string]bool{filepath.Join(dir, "mounted"): true}); err != nil || sum != 43 {
		t.Errorf("%d, %v", sum, err)
	}
	if sum, err := sizeBelow(filepath.Join(dir, "none"), nil); err != nil || sum != 0 {
		t.Errorf("a missing tree has %d bytes, %v", sum, err)
	}
	if points, err := mountPoints(); err != nil || !points["/proc"] {
		t.Errorf("%v, %v", points, err)
	}
}

func TestLongestPause(t *testing.T) {
	const log = `{"draygen":1,"event":"ready","role":"sink"}
{"event":"interval","to_ns":1000005000000,"received":0,"duplicates":0}
{"event":"interval","to_ns":1000105000000,"received":0,"duplicates":0}
{"event":"interval","to_ns":1000110000000,"received":50,"duplicates":0}
{"event":"interval","to_ns":1000115000000,"received":0,"duplicates":0}
{"event":"interval","to_ns":1000120000000,"received":0,"duplicates":0}
{"event":"interval","to_ns":1000125000000,"received":0,"duplicates":50}
{"event":"interval","to_ns":1000130000000,"rec`
	for name, c := range map[string]struct {
		more    string // than the log
		reports int
		want    time.Duration
	}{
		// Time before the first packet is no outage, and the last line is incomplete.
		"three reports": {"", 6, 15 * time.Millisecond},
		"a stall": {`eived":50}
{"event":"interval","to_ns":1000170000000,"received":50,"duplicates":0}`, 8, 40 * time.Millisecond},
		"none since": {`eived":0}
{"event":"interval","to_ns":1000225000000,"received":0,"duplicates":0}`, 8, 100 * time.Millisecond},
	} {
		if seen := parseTicks([]byte(log + c.more)); len(seen) != c.reports || longestPause(seen) != c.want {
			t.Errorf("%s: %v: %v", name, seen, longestPause(seen))
		}
	}
	if longestPause(nil) != 0 {
		t.Error("an empty log has a pause")
	}
}

// Each tool with its own kind of chain states its duration.
func TestProbesAreExpected(t *testing.T) {
	for _, tool := range []experiment.Tool{
		experiment.ToolChecks, experiment.ToolDensity, experiment.ToolPlanned, experiment.ToolRecovery, experiment.ToolCyclictest,
		experiment.ToolSpin, experiment.ToolEcho, experiment.ToolImage, experiment.ToolClocks, experiment.ToolPool,
	} {
		p, ok := probes[tool]
		if !ok {
			t.Errorf("%s is no probe", tool)
			continue
		}
		for _, transport := range []string{"", "shm"} {
			c := experiment.Cell{Tool: tool, Transport: transport, Runtime: chain.RuntimeRunc, Functions: 3}
			if took := expect(c, time.Second); took <= 0 || took > 10*time.Second || p.run == nil {
				t.Errorf("%s takes %v", tool, took)
			}
		}
	}
}

func TestDistinctMarks(t *testing.T) {
	if got := distinct([]string{"b", "a", "b"}); !slices.Equal(got, []string{"a", "b"}) {
		t.Error(got)
	}
	if got := distinct(nil); got == nil || len(got) != 0 {
		t.Errorf("%#v: a record's marks are never null", got)
	}
}
