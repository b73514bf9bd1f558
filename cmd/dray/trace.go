// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/drayage/dray/internal/measure/chainrun"
	"github.com/drayage/dray/internal/measure/runner"
	"github.com/drayage/dray/internal/measure/trace"
	"github.com/drayage/dray/internal/plan"
	"github.com/drayage/dray/internal/spec/parse"
	"github.com/drayage/dray/internal/spec/units"
)

// leastRounds is how many rounds have intervals.
const leastRounds = 2

// traceFlags are the options of `dray trace`.
type traceFlags struct {
	options trace.Options
	load    string
	noWait  bool
}

func (a *app) traceCommand() *cobra.Command {
	var f traceFlags
	cmd := &cobra.Command{
		Use:   "trace CHAIN [PATH]",
		Short: "Show in which link or function of a path packets spend their time",
		Long: "Send packets along a path of a running chain, observe them at every port on the way, and show for each link and\n" +
			"each function the delay, the loss, the rate and the use of CPUs, and which of them decides. The functions between\n" +
			"the path's ends should run: a note names those that ended, where only the kernel can pass packets on. At its ends\n" +
			"`dray` itself sends and receives. Without PATH it traces all paths of the chain file. Ctrl-C shows the finished\n" +
			"rounds, if there are two. docs/method.md says what is observed where, and how exact it is. Every second trial runs\n" +
			"without observation, which shows what observing costs.",
		Example: "  dray trace ran-path\n  dray trace ran-path dl --load 200Mbps\n  dray trace ran-path dl --back",
		Args:    args(cobra.RangeArgs(1, 2)),
		RunE: func(cmd *cobra.Command, argv []string) error {
			if err := f.check(); err != nil {
				return err
			}
			end, err := a.awaitTurn(cmd.Context(), "trace", f.noWait)
			if err != nil {
				return err
			}
			defer end()
			return a.trace(cmd.Context(), argv[0], argv[1:], f)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&f.load, "load", "", "bitrate of the packets' payload; 0bps: 1000 small packets per second (default: the path's load)")
	flags.DurationVarP(&f.options.Duration, "duration", "d", time.Second, "length of each trial, 100ms to 1m")
	flags.IntVar(&f.options.Rounds, "rounds", 5, "rounds, 2 to 1000, each of a trial that is observed and one that is not")
	flags.BoolVar(&f.options.Back, "back", false, "trace from the path's last port to its first")
	addNoWaitFlag(cmd, &f.noWait)
	return cmd
}

func (f *traceFlags) check() error {
	switch {
	case f.options.Duration < 100*time.Millisecond || f.options.Duration > time.Minute:
		return usageError("--duration %v: give 100ms to 1m", f.options.Duration)
	case f.options.Rounds < leastRounds || f.options.Rounds > 1000:
		return usageError("--rounds %d: give %d to 1000", f.options.Rounds, leastRounds)
	case f.load == "":
		return nil
	}
	load, err := units.ParseBitrate(f.load)
	if err != nil {
		return usageError("--load: %v", err)
	}
	f.options.Load = &load
	return nil
}

func (a *app) trace(ctx context.Context, name string, paths []string, f traceFlags) (err error) {
	_, live, err := a.openWhole(ctx, name)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, live.Release()) }()
	chosen, err := choosePaths(live.State.Plan, paths)
	if err != nil {
		return err
	}
	input := chainrun.Input(live)
	var results []*trace.Result
	for _, p := range chosen {
		tracer := trace.Tracer{Live: live, Input: input, Path: p, Options: f.options, Say: func(text string) { a.progress("%s", text) }}
		r, err := tracePath(ctx, &tracer)
		if r != nil {
			results = append(results, r)
		}
		if err != nil {
			return errors.Join(a.printInterrupted(ctx, name, results), err)
		}
	}
	return a.printTraces(name, results)
}

// tracePath traces one path. If it is interrupted, the error says so, and the result is that of
// the finished rounds; nil if these are too few.
func tracePath(ctx context.Context, tracer *trace.Tracer) (*trace.Result, error) {
	seen, err := tracer.Run(ctx)
	finished := 0
	if seen != nil {
		finished = seen.Rounds()
	}
	if ctx.Err() != nil {
		err = interruptedTrace(tracer.Path.Name, finished, tracer.Options.Rounds)
	}
	if err != nil && !worthShowing(ctx, finished) {
		return nil, asUsage(err)
	}
	r, failed := seen.Result()
	return r, errors.Join(err, failed)
}

// worthShowing reports whether a trace that failed was interrupted after enough rounds.
func worthShowing(ctx context.Context, finished int) bool {
	return ctx.Err() != nil && finished >= leastRounds
}

// interruptedTrace is the error of a trace that a signal ended.
func interruptedTrace(path string, finished, rounds int) error {
	return fmt.Errorf("%w after %d of %d rounds of path %s", runner.ErrInterrupted, finished, rounds, path)
}

// printInterrupted prints what an interrupted trace has, if anything.
func (a *app) printInterrupted(ctx context.Context, chainName string, results []*trace.Result) error {
	if ctx.Err() == nil || len(results) == 0 {
		return nil
	}
	return a.printTraces(chainName, results)
}

// asUsage gives an error of the load the exit code of a wrong option.
func asUsage(err error) error {
	if few := (*trace.LoadError)(nil); errors.As(err, &few) {
		return usageError("%w", err)
	}
	return err
}

// choosePaths are the named paths of a plan, or all.
func choosePaths(p *plan.Plan, names []string) ([]*plan.Path, error) {
	if len(p.Paths) == 0 {
		return nil, fmt.Errorf("chain %s has no paths: add `paths` to its file (`dray explain paths`), and apply it", p.Chain)
	}
	var chosen []*plan.Path
	var all []string
	for i := range p.Paths {
		if all = append(all, p.Paths[i].Name); len(names) == 0 || names[0] == p.Paths[i].Name {
			chosen = append(chosen, &p.Paths[i])
		}
	}
	if len(chosen) == 0 {
		return nil, fmt.Errorf("chain %s has no path %s: it has %s", p.Chain, names[0], parse.All(all))
	}
	return chosen, nil
}

func (a *app) printTraces(chainName string, results []*trace.Result) error {
	a.endProgress()
	if a.json {
		return a.printJSON(schemaTrace, map[string]any{"chain": chainName, "paths": results})
	}
	return withoutClosedOutput(a.printText(trace.Document(chainName, results).Text))
}
