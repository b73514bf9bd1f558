// SPDX-License-Identifier: Apache-2.0

package published

import (
	"context"
	"errors"
	"fmt"
	"sort"
	"strings"
	"time"

	"github.com/drayage/dray/internal/host"
	"github.com/drayage/dray/internal/node"
	"github.com/drayage/dray/internal/plan"
	"github.com/drayage/dray/internal/result/record"
	"github.com/drayage/dray/internal/spec/chain"
	"github.com/drayage/dray/internal/spec/experiment"
	"github.com/drayage/dray/internal/spec/inventory"
	"github.com/drayage/dray/internal/spec/parse"
)

// idleMemory is the limit of each function of a dense chain.
const idleMemory = "16Mi"

func densityText(_ *inventory.Inventory, c experiment.Cell) string {
	var b strings.Builder
	b.WriteString("functions:\n")
	for i := range c.Functions {
		fmt.Fprintf(&b, "  - {name: f%d, runtime: %s%s, memory: %s, command: [sh, -c, \"echo %s; exec sleep infinity\"]}\n", i, c.Runtime, imageField(c), idleMemory, ready)
	}
	return b.String()
}

// denseTime is roughly how long each function of a dense chain takes to come up
// and go down.
const denseTime = 150 * time.Millisecond

// densePatience is how long a dense chain's commands may take to run; short
// enough to count the started ones within patience.
const densePatience = 40 * time.Second

// dense waits, at most densePatience, until all functions' commands have run. Then
// it counts the running functions, and reads their total memory.
func dense(ctx context.Context, _ *Runner, live *node.Live, c experiment.Cell) (record.Trial, error) {
	t := record.Trial{Quantity: record.QStart, Start: time.Now(), Marks: []string{}}
	stop, err := supervise(ctx, live)
	if err != nil {
		return t, err
	}
	defer stop()
	started, err := awaitDense(ctx, live, c.Functions)
	if err != nil {
		return t, err
	}
	t.Duration = time.Since(t.Start)
	up, err := countRunning(ctx, live, started)
	if err != nil {
		return t, err
	}
	meter, err := host.NewMeter(live.Cgroup())
	if err != nil {
		return t, err
	}
	usage, err := meter.Read()
	if err != nil {
		return t, err
	}
	t.Raw = fmt.Sprintf("%d of %d functions started, %d run, memory %d\n", started, c.Functions, up, usage.Memory)
	t.Experiment = density(started, up, c.Functions, t.Duration, usage.Memory)
	if up == 0 {
		return t, nil
	}
	why, err := memoryElsewhere(ctx, live, "f0", c)
	if why != "" {
		delete(t.Experiment.Values, "memory")
		t.Experiment.Why["memory"] = why
	}
	return t, err
}

// awaitDense waits until the commands of that many functions have run, and returns
// how many have within densePatience.
func awaitDense(ctx context.Context, live *node.Live, all int) (started int, err error) {
	has := func(i int) bool { return strings.Contains(live.LogTail(fmt.Sprintf("f%d", i), 3), ready) }
	for began := time.Now(); started < all && time.Since(began) < densePatience; {
		if has(started) {
			started++
		} else if err := host.Sleep(ctx, 2*time.Millisecond); err != nil {
			return started, err
		}
	}
	for i := started; i < all; i++ { // a missing one hides those after it
		if has(i) {
			started++
		}
	}
	return started, nil
}

// denseSettled is how long the supervisor may take to publish started functions.
const denseSettled = 5 * time.Second

// countRunning is how many functions run, once want do, or after denseSettled.
func countRunning(ctx context.Context, live *node.Live, want int) (up int, err error) {
	for began := time.Now(); ; {
		functions, _, err := live.Status()
		if err != nil {
			return 0, err
		}
		if up = running(functions); up >= want || time.Since(began) > denseSettled {
			return up, nil
		}
		if err := host.Sleep(ctx, 2*time.Millisecond); err != nil {
			return up, err
		}
	}
}

// running is how many functions have a process.
func running(functions []node.FunctionStatus) (n int) {
	for _, f := range functions {
		if f.Phase == node.PhaseRunning {
			n++
		}
	}
	return n
}

// density are the figures of a dense chain: functions started and running, and
// their memory in bytes.
func density(started, up, all int, took time.Duration, memory uint64) *record.Experiment {
	e := &record.Experiment{Values: map[string]float64{"functions": float64(up)}, Why: map[string]string{}}
	if started == all {
		e.Values["start_time"] = took.Seconds()
	} else {
		e.Why["start_time"] = fmt.Sprintf("%d of %d functions started within %v", started, all, densePatience)
	}
	if up > 0 {
		e.Values["memory"] = float64(memory) / mega / float64(up)
	} else {
		e.Why["memory"] = "no function runs"
	}
	return e
}

// plannedMemory is the memory of each function with its own CPU, and most the
// maximum number of them.
const (
	plannedMemory = "1Gi"
	mostPlanned   = 1024
)

// planned asks the planner how many functions with a CPU and a gibibyte each fit
// on this host; nothing comes up.
func planned(_ context.Context, r *Runner, _ *node.Live, _ experiment.Cell) (record.Trial, error) {
	t := record.Trial{Quantity: record.QPlanned, Start: time.Now(), Marks: []string{}}
	var failed error
	refused := sort.Search(mostPlanned, func(n int) bool {
		fits, why, err := fit(r.Inventory, n+1)
		failed = errors.Join(failed, err)
		if !fits {
			t.Raw += fmt.Sprintf("%d functions: %s\n", n+1, why)
		}
		return !fits
	})
	threads := len(r.Inventory.Host.CPUs)
	t.Experiment = &record.Experiment{Values: map[string]float64{
		"threads": float64(threads), "functions": float64(refused), "memory_per_thread": float64(r.Inventory.Host.MemoryTotal) / giga / float64(max(1, threads)),
	}}
	t.Duration = time.Since(t.Start)
	return t, failed
}

// fit reports whether the planner places n such functions, and if not why.
func fit(inv *inventory.Inventory, n int) (fits bool, why string, err error) {
	var b strings.Builder
	fmt.Fprintf(&b, "apiVersion: %s\nkind: %s\nname: %s\nfunctions:\n", parse.APIVersion, chain.Kind, chainName)
	for i := range n {
		fmt.Fprintf(&b, "  - {name: f%d, runtime: %s, cpus: 1, memory: %s}\n", i, chain.RuntimeRunc, plannedMemory)
	}
	parsed, err := chain.Parse("dense chain", []byte(b.String()))
	if err != nil {
		return false, "", err
	}
	_, err = plan.Make(parsed, inv)
	var infeasible *plan.Infeasible
	if errors.As(err, &infeasible) && len(infeasible.Plan.Violations) > 0 {
		v := infeasible.Plan.Violations[0]
		return false, v.Constraint + ": " + v.Reason, nil
	}
	return err == nil, "", err
}
