// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/drayage/dray/internal/host"
	"github.com/drayage/dray/internal/link/transport"
	"github.com/drayage/dray/internal/measure/instrument"
	"github.com/drayage/dray/internal/measure/verify"
	"github.com/drayage/dray/internal/node"
	"github.com/drayage/dray/internal/node/doctor"
	"github.com/drayage/dray/internal/plan"
	"github.com/drayage/dray/internal/result/record"
	"github.com/drayage/dray/internal/result/report"
	"github.com/drayage/dray/internal/spec/inventory"
)

// measureOptions are the flags of every command that measures.
type measureOptions struct {
	out      string
	profile  string
	duration time.Duration
	rounds   int
	seed     uint64
}

func (o *measureOptions) addFlags(cmd *cobra.Command) {
	cmd.PreRunE = func(*cobra.Command, []string) error { return o.check() }
	f := cmd.Flags()
	f.StringVar(&o.out, "out", "", "directory for records and report (default out/CHAIN-TIME)")
	f.StringVar(&o.profile, "profile", string(verify.Standard), "how long to measure: quick, standard or thorough")
	f.DurationVar(&o.duration, "duration", 0, "length of each trial (default: sized from the requirement)")
	f.IntVar(&o.rounds, "rounds", 0, "rounds of trials (default: the profile's, four times as many where they decide nothing)")
	f.Uint64Var(&o.seed, "seed", 0, "seed of the random order (default: a new one, printed)")
}

// check makes a senseless value a usage error.
func (o *measureOptions) check() error {
	switch _, err := verify.ParseProfile(o.profile); {
	case err != nil:
		return usageError("--profile: %v", err)
	case o.duration != 0 && o.duration < time.Second:
		return usageError("--duration %v is too short: the instruments take at least 1s", o.duration)
	case o.rounds < 0:
		return usageError("--rounds %d is negative", o.rounds)
	}
	return nil
}

// options are the flags as the measurement takes them.
func (o *measureOptions) options() verify.Options {
	seed := o.seed
	if seed == 0 {
		seed = rand.Uint64N(1 << 53) // exact in JSON readers that use doubles
	}
	return verify.Options{Profile: verify.Profile(o.profile), Duration: o.duration, Rounds: o.rounds, Seed: seed}
}

// measurement is one run directory in the making.
type measurement struct {
	app       *app
	job       *job
	dir       string
	options   verify.Options
	run       report.Run
	functions []node.FunctionStatus
	measured  bool // every link has been measured: the records are complete
}

func (a *app) newMeasurement(j *job, opts measureOptions) (*measurement, error) {
	options := opts.options()
	now := time.Now()
	dir, err := runDir(opts.out, j.chain.Name, now)
	if err != nil {
		return nil, err
	}
	m := &measurement{app: a, job: j, dir: dir, options: options}
	m.run = report.Run{
		Schema: report.Schema, ID: fmt.Sprintf("%s-%s", j.chain.Name, now.UTC().Format("20060102T150405.000")),
		Chain: j.chain.Name, Started: now, Dray: version, Seed: options.Seed,
	}
	return m, nil
}

// phase times a part of the run.
func (m *measurement) phase(name string, f func() error) error {
	started := time.Now()
	err := f()
	m.run.Phases = append(m.run.Phases, report.Phase{Name: name, Duration: time.Since(started)})
	return err
}

// links measures every link of the chain and writes the records.
func (m *measurement) links(ctx context.Context, live *node.Live) (err error) {
	sink, err := record.Create(filepath.Join(m.dir, report.RecordsFile))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, sink.Close()) }()
	m.app.progress("Measuring %s, about %v, seed %d", count(len(live.State.Plan.Links), "link"),
		verify.Estimate(live.State.Plan, m.options).Round(time.Second), m.options.Seed)
	_, err = verify.Links(ctx, verify.Input{
		Plan:      live.State.Plan,
		Sandboxes: live.State.Sandboxes,
		Device:    live.Device,
		Options:   m.options,
		Run:       m.run.ID,
		Env:       m.environment(live),
		Marks:     sharedMark(m.functions),
		Sink:      sink,
		Progress: func(p verify.Progress) {
			if p.Prolonged {
				m.app.progress("%s", p.Text)
				return
			}
			m.app.progress("  %s", p.Text)
		},
	})
	m.app.endProgress()
	if err != nil {
		return err
	}
	m.measured = true
	return doctor.MarkRun(m.job.node.StateDir, ran(live)...)
}

// sharedMark marks what is measured while a function's command runs.
func sharedMark(functions []node.FunctionStatus) []string {
	for _, st := range functions {
		if st.Phase == node.PhaseRunning || st.Phase == node.PhaseRestarting {
			return []string{record.MarkShared}
		}
	}
	return nil
}

// ran is what has carried traffic in a chain.
func ran(live *node.Live) []string {
	var keys []string
	for _, l := range live.State.Plan.Links {
		keys = append(keys, doctor.Transports.Key(l.Transport))
		kinds := l.Shape.Kinds()
		for _, e := range l.Ends {
			kinds = append(kinds, e.Shape.Kinds()...)
		}
		for _, kind := range kinds {
			keys = append(keys, doctor.Qdiscs.Key(kind))
		}
	}
	for _, f := range live.State.Plan.Functions {
		keys = append(keys, doctor.Runtimes.Key(string(f.Runtime)))
	}
	for _, i := range instrument.All() {
		keys = append(keys, doctor.Instruments.Key(i.Name()))
	}
	return keys
}

// environment describes the machine, the engines and the chain's interfaces
// before each trial.
func (m *measurement) environment(live *node.Live) func() record.Environment {
	return func() record.Environment { return environmentOf(m.job.inventory, live) }
}

// environmentOf describes the machine as it is now and, unless live is nil, the
// engines and the interfaces of a chain.
func environmentOf(inv *inventory.Inventory, live *node.Live) record.Environment {
	now, err := host.Describe()
	if err != nil {
		now = inv.Host
	}
	env := verify.Environment(now)
	env.Dray, env.Engines = version, engines(inv, live)
	env.Offloads, env.Qdiscs = map[string]string{}, map[string]string{}
	if live == nil {
		return env
	}
	for _, l := range live.State.Plan.Links {
		maps.Copy(env.Qdiscs, switchQdiscs(l, live.State.Reports[l.Name]))
		for _, e := range l.Ends {
			if e.Uplink != "" || live.State.Sandboxes[e.Function] == nil {
				continue
			}
			ns := live.State.Sandboxes[e.Function].Netns
			env.Offloads[e.String()] = textOr(ns.Offloads(e.Port))
			qdisc, err := ns.ReadQdisc(e.Port)
			env.Qdiscs[e.String()] = textOr(strings.TrimSpace(qdisc.Kind+" "+qdisc.Text), err)
		}
	}
	return env
}

// switchQdiscs are those that the link's switch has set on its side of the ports,
// which were read back when the link was made.
func switchQdiscs(l plan.Link, r *transport.Report) map[string]string {
	if !l.Shape.AtSwitch() || r == nil {
		return nil
	}
	qdiscs := map[string]string{}
	for _, q := range r.Qdiscs {
		qdiscs[l.Name+": "+q.End] = q.Kind + " " + q.Text
	}
	return qdiscs
}

func textOr(s string, err error) string {
	if err != nil {
		return "unknown: " + err.Error()
	}
	return s
}

// engines are the versions of every program that has a part in the figures.
func engines(inv *inventory.Inventory, live *node.Live) map[string]string {
	versions := map[string]string{}
	for _, items := range [][]inventory.Item{inv.Instruments, inv.Runtimes} {
		for _, item := range items {
			if item.Version != "" {
				versions[item.Name] = item.Version
			}
		}
	}
	if live == nil {
		return versions
	}
	for link, r := range live.State.Reports {
		if r != nil && r.Engine != "" {
			versions["link "+link] = r.Engine
		}
	}
	return versions
}

// writeRun writes all of the run directory but the records and the page.
func (m *measurement) writeRun(live *node.Live) error {
	m.run.Finished = time.Now()
	m.run.Functions, m.run.Links = m.functionRows(live), linkRows(live)
	files := map[string]any{
		report.RunFile: m.run, report.PlanFile: live.State.Plan, report.InventoryFile: m.job.inventory,
	}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if err := printTo(filepath.Join(m.dir, name), func(w io.Writer) error { return encodeJSON(w, files[name]) }); err != nil {
			return err
		}
	}
	return printTo(filepath.Join(m.dir, report.ChainFile), func(w io.Writer) error {
		_, err := w.Write(m.job.source)
		return err
	})
}

func (m *measurement) functionRows(live *node.Live) []report.Function {
	outcomes := map[string]string{}
	for _, st := range m.functions {
		outcomes[st.Name] = outcomeText(st)
	}
	var rows []report.Function
	for _, f := range live.State.Plan.Functions {
		rows = append(rows, report.Function{Name: f.Name, Runtime: string(f.Runtime), CPUs: f.CPUs, Outcome: outcomes[f.Name]})
	}
	return rows
}

func outcomeText(st node.FunctionStatus) string {
	switch st.Phase {
	case node.PhaseRunning:
		return "was running"
	case node.PhaseExited, node.PhaseFailed:
		return fmt.Sprintf("exited %d", st.Exit)
	}
	return string(st.Phase)
}

func linkRows(live *node.Live) []report.Link {
	var rows []report.Link
	for _, l := range live.State.Plan.Links {
		row := report.Link{Name: l.Name, Transport: l.Transport, Reason: l.Reason, Addresses: map[string]string{}, Qdiscs: map[string]string{}}
		for _, e := range l.Ends {
			row.Ends = append(row.Ends, e.String())
			if e.IP.IsValid() {
				row.Addresses[e.String()] = e.IP.String()
			}
		}
		if r := live.State.Reports[l.Name]; r != nil {
			row.Engine = r.Engine
			row.Offloads = offloadTexts(r.Offloads)
			for _, q := range r.Qdiscs {
				row.Qdiscs[q.End] = q.Text
			}
		}
		rows = append(rows, row)
	}
	return rows
}

func offloadTexts(changes []transport.OffloadChange) []string {
	var texts []string
	for _, o := range changes {
		state := "off"
		if o.To {
			state = "on"
		}
		texts = append(texts, fmt.Sprintf("%s: %s %s (%s)", o.End, o.Feature, state, o.Reason))
	}
	return texts
}
