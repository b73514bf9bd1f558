// SPDX-License-Identifier: Apache-2.0

package experiment

import (
	"context"
	"errors"
	"fmt"
	"sort"
	"strings"
	"time"

	"github.com/drayage/dray/internal/chain"
	"github.com/drayage/dray/internal/host"
	"github.com/drayage/dray/internal/inventory"
	"github.com/drayage/dray/internal/node"
	"github.com/drayage/dray/internal/plan"
	"github.com/drayage/dray/internal/record"
)

// idleMemory is the limit of each function of a dense chain.
const idleMemory = "16Mi"

func densityText(_ *inventory.Inventory, c chain.Cell) string {
	var b strings.Builder
	b.WriteString("functions:\n")
	for i := range c.Functions {
		fmt.Fprintf(&b, "  - {name: f%d, runtime: %s, memory: %s, command: [sh, -c, \"echo %s; exec sleep infinity\"]}\n", i, c.Runtime, idleMemory, ready)
	}
	return b.String()
}

// denseTime is about how long each function of a dense chain takes to come up and
// to go.
const denseTime = 150 * time.Millisecond

// dense waits until the commands of all functions have run, and reads what memory
// they then hold together.
func dense(ctx context.Context, _ *Runner, live *node.Live, c chain.Cell) (record.Trial, error) {
	t := record.Trial{Quantity: record.QStart, Start: time.Now(), Marks: []string{}}
	stop, err := supervise(ctx, live)
	if err != nil {
		return t, err
	}
	defer stop()
	up := 0
	for up < c.Functions {
		if !strings.Contains(live.LogTail(fmt.Sprintf("f%d", up), 3), ready) {
			if time.Since(t.Start) > startTime {
				return t, fmt.Errorf("%d of %d functions started within %v", up, c.Functions, startTime)
			}
			if err := sleep(ctx, 2*time.Millisecond); err != nil {
				return t, err
			}
			continue
		}
		up++
	}
	t.Duration = time.Since(t.Start)
	meter, err := host.NewMeter(live.Cgroup())
	if err != nil {
		return t, err
	}
	usage, err := meter.Read()
	if err != nil {
		return t, err
	}
	t.Raw = fmt.Sprintf("%d functions, memory %d\n", up, usage.Memory)
	t.Experiment = &record.Experiment{Values: map[string]float64{
		"start_time": t.Duration.Seconds(), "functions": float64(up), "memory": float64(usage.Memory) / mega / float64(up),
	}}
	return t, nil
}

// plannedMemory is that of each function with a CPU of its own, and most how many
// of them are asked for at the most.
const (
	plannedMemory = "1Gi"
	mostPlanned   = 1024
)

// planned asks the planner how many functions with a CPU and a gibibyte each fit
// on this host; nothing comes up.
func planned(_ context.Context, r *Runner, _ *node.Live, _ chain.Cell) (record.Trial, error) {
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

// fit reports whether the planner places n such functions, and why it does not.
func fit(inv *inventory.Inventory, n int) (fits bool, why string, err error) {
	var b strings.Builder
	fmt.Fprintf(&b, "apiVersion: %s\nkind: %s\nname: %s\nfunctions:\n", chain.APIVersion, chain.Kind, chainName)
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
