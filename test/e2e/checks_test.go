// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/drayage/dray/internal/function/docker"
	"github.com/drayage/dray/internal/function/docker/dockertest"
	"github.com/drayage/dray/internal/function/process"
	"github.com/drayage/dray/internal/function/runtime"
	"github.com/drayage/dray/internal/host"
	"github.com/drayage/dray/internal/measure/published"
	"github.com/drayage/dray/internal/measure/runner"
	"github.com/drayage/dray/internal/node"
	"github.com/drayage/dray/internal/result/record"
	"github.com/drayage/dray/internal/result/report"
	"github.com/drayage/dray/internal/spec/chain"
	"github.com/drayage/dray/internal/spec/experiment"
	"github.com/drayage/dray/internal/spec/inventory"
)

// trials keeps an experiment's measurements.
type trials []record.Trial

func (t *trials) Write(r record.Trial) error {
	*t = append(*t, r)
	return nil
}

// Docker functions: [ a ] [ b, a second container ] and [ open ], which is unprotected:
// one round of the checks. Docker shows a function every CPU and its own root; everything
// that Drayage itself sets is effective.
func TestChecksInDocker(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	client := dockertest.Start(t)
	cpus, err := host.AllowedCPUs()
	if err != nil {
		t.Fatal(err)
	}
	cell := experiment.Cell{Tool: experiment.ToolChecks, Runtime: chain.RuntimeDocker}
	measure := func(cell experiment.Cell) (string, trials) {
		var got trials
		machine := &runner.Machine{
			Node: &node.Node{StateDir: b.state, Runtimes: []runtime.Runtime{process.New(), docker.New(docker.Options{Client: client, PauseProgram: program})}},
			Inventory: &inventory.Inventory{
				Host:     inventory.Host{CPUs: cpus, NUMANodes: 1, MemoryTotal: 8 << 30, MemoryFree: 8 << 30},
				Runtimes: []inventory.Item{{Name: "process", Status: inventory.OK}, {Name: "docker", Status: inventory.OK}},
			},
			Env: func(*node.Live) record.Environment { return record.Environment{Kernel: "any"} },
		}
		r := published.Runner{
			Machine: machine, Sink: &got,
			Run: &report.ExperimentsRun{ID: "x", Profile: published.Quick, Rounds: 1, Trial: time.Second, Skipped: map[string]string{},
				Experiments: []experiment.Experiment{{Name: "x", Rows: []experiment.Row{{Name: "a", Figure: "any", Cell: cell}}}}},
		}
		if err := r.Measure(context.Background()); err != nil {
			t.Fatal(err)
		}
		return r.Run.Skipped[cell.String()], got
	}
	if why, got := measure(cell); len(got) != 0 || !strings.Contains(why, "docker import debian.tar dray-debian") {
		t.Errorf("without the image: %q, %+v", why, got)
	}
	dockertest.Import(t, client, "dray-debian")
	why, got := measure(cell)
	if why != "" || len(got) != 1 || got[0].Error != "" || got[0].Experiment == nil {
		t.Fatalf("with the image: %q, %+v", why, got)
	}
	e := got[0].Experiment
	for figure, want := range map[experiment.Figure]float64{
		"limits_memory": 1, "limits_processes": 1, "hides_processes": 1, "hides_memory": 1, "hides_sockets": 1, "hides_host": 1,
		"drops_capabilities": 1, "filters_syscalls": 1, "gains_nothing": 1, "maps_users": 0,
	} {
		if v, ok := e.Values[string(figure)]; !ok || v != want {
			t.Errorf("%s: %v (%v %s), want %v", figure, v, ok, e.Why[string(figure)], want)
		}
	}
	if len(cpus) > 1 && (e.Values["limits_cpus"] != 1 || e.Values["hides_cpus"] != 0) {
		t.Errorf("CPUs: %v, %v", e.Values, e.Why)
	}
	for _, figure := range []string{"limits_huge_pages", "hides_huge_pages", "syscalls_dropped"} {
		if _, ok := e.Values[figure]; ok || e.Why[figure] == "" {
			t.Errorf("%s: %v, %q", figure, e.Values, e.Why[figure])
		}
	}
	if !strings.Contains(got[0].Raw, "hides_host: without: yes; in the function: no: the files are its own") {
		t.Error("the image's own password hashes count as the host's")
	}
	if t.Failed() {
		t.Log(got[0].Raw)
	}
	// Its disk is the image, and its control groups hold the container.
	why, got = measure(experiment.Cell{Tool: experiment.ToolStart, Runtime: chain.RuntimeDocker})
	if why != "" || len(got) != 1 || got[0].Error != "" || got[0].Experiment == nil {
		t.Fatalf("start: %q, %+v", why, got)
	}
	e = got[0].Experiment
	if v := e.Values; v["start_time"] <= 0 || v["disk"] < 1 || v["memory"] < 1 && !strings.Contains(e.Why["memory"], "cgroupdriver") || !strings.HasSuffix(got[0].ID, "start/docker-r0") {
		t.Errorf("%s: %v", got[0].ID, v)
	}
}
