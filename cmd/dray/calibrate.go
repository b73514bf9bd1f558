// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/drayage/dray/internal/measure/chainrun"
	"github.com/drayage/dray/internal/node"
	"github.com/drayage/dray/internal/node/doctor"
	"github.com/drayage/dray/internal/plan"
	"github.com/drayage/dray/internal/result/calibrate"
	"github.com/drayage/dray/internal/result/record"
	"github.com/drayage/dray/internal/result/report"
	"github.com/drayage/dray/internal/spec/chain"
	"github.com/drayage/dray/internal/spec/inventory"
	"github.com/drayage/dray/internal/spec/units"
)

const calibrateLong = `Measure each transport of this host, over one link between two functions, and
save the figures as evidence for the planner. Without them, the planner uses
stated defaults. Each transport takes a minute or two. The host should be idle:
load is recorded, but later plans use the figures all the same.
The evidence is kept in /var/lib/dray and survives a reboot; a DRAY_STATE
directory keeps its own. It is valid only on the same CPU and kernel, and
` + "`dray doctor` and `dray plan`" + ` show its age.`

func (a *app) calibrateCommand() *cobra.Command {
	var opts measureOptions
	cmd := &cobra.Command{
		Use:     "calibrate [TRANSPORT...]",
		Short:   "Measure this host's transports, as evidence for the planner",
		Long:    calibrateLong,
		Example: "  dray calibrate\n  dray calibrate veth bridge --rounds 3",
		RunE: func(cmd *cobra.Command, argv []string) error {
			end, err := a.awaitTurn(cmd.Context(), "calibrate", opts.noWait)
			if err != nil {
				return err
			}
			defer end()
			return a.calibrate(cmd.Context(), argv, opts)
		},
	}
	opts.addFlags(cmd)
	return cmd
}

func (a *app) calibrate(ctx context.Context, names []string, opts measureOptions) error {
	n, err := a.node()
	if err != nil {
		return err
	}
	inv, err := a.inspect(ctx, n)
	if err != nil {
		return err
	}
	chosen, err := calibratable(inv, names)
	if err != nil {
		return err
	}
	var failed []error
	measured := []inventory.Calibration{}
	for _, name := range chosen {
		c, err := a.calibrateOne(ctx, n, name, opts)
		if err == nil {
			measured = append(measured, c)
			err = keep(n.StateDir, c)
		}
		if err != nil {
			failed = append(failed, fmt.Errorf("calibrate %s: %w", name, err))
		}
		if ctx.Err() != nil {
			break
		}
	}
	return errors.Join(append(failed, a.printCalibration(measured))...)
}

// keep replaces the calibration of one transport. It reads the file again, since
// calibration takes minutes. A file that cannot be read is moved aside.
func keep(stateDir string, c inventory.Calibration) error {
	file := doctor.CalibrationFile(stateDir)
	all, err := doctor.LoadCalibration(file)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		if err := os.Rename(file, file+".unreadable"); err != nil {
			return err
		}
	}
	all = slices.DeleteFunc(all, func(o inventory.Calibration) bool { return o.Transport == c.Transport })
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	return doctor.SaveCalibration(file, append(all, c))
}

// printCalibration prints what was measured now: older calibrations are for `dray
// doctor`, which shows their age.
func (a *app) printCalibration(measured []inventory.Calibration) error {
	if a.json {
		return a.printJSON(schemaCalibrations, map[string]any{"calibrations": measured})
	}
	for _, c := range measured {
		fmt.Fprintf(a.out, "%s: %s, %s, %d packets/s, loss ≤ %.2g, %s\n", c.Transport, latencyText(c),
			bitratesText(c), c.PacketRate, c.LossRatio, c.Source)
	}
	return nil
}

// warnOfCalibration reports on standard error that plans go by stated defaults; `dray
// plan` shows it with the plan.
func (a *app) warnOfCalibration(inv *inventory.Inventory) {
	if inv.CalibrationFault != "" {
		a.warn(fmt.Errorf("the calibration of this host is not used: %s", inv.CalibrationFault))
	}
}

func bitratesText(c inventory.Calibration) string {
	text := fmt.Sprintf("udp ≥ %s in frames of %d bytes", units.Bitrate(c.UDPBitrate), c.UDPFrame)
	if c.TCPBitrate > 0 {
		text += fmt.Sprintf(", tcp ≥ %s", units.Bitrate(c.TCPBitrate))
	}
	return text
}

func latencyText(c inventory.Calibration) string {
	var parts []string
	for _, p := range c.Latency {
		parts = append(parts, fmt.Sprintf("p%g ≤ %s", p.Percentile, p.Latency))
	}
	return strings.Join(parts, " ")
}

// calibratable are the named transports, or all that can join two ports here.
func calibratable(inv *inventory.Inventory, names []string) ([]string, error) {
	if len(names) == 0 {
		for _, t := range inv.Transports {
			if t.Usable() && t.Caps.MinEnds >= 2 && !t.Caps.SameNetns && !t.Caps.Tunnel {
				names = append(names, t.Name)
			}
		}
		return names, nil
	}
	slices.Sort(names)
	names = slices.Compact(names)
	for _, name := range names {
		t := inv.Transport(name)
		switch {
		case t == nil:
			return nil, usageError("no transport %q; `dray doctor` lists the transports", name)
		case !t.Usable():
			return nil, fmt.Errorf("transport %s: %s; %s", name, t.Reason, t.Fix)
		case t.Caps.Tunnel:
			return nil, usageError("transport %s joins functions on different hosts, and the chain file defines their underlay: run a chain with hosts instead", name)
		case t.Caps.MinEnds < 2 || t.Caps.SameNetns:
			return nil, usageError("transport %s does not join two functions: nothing to calibrate", name)
		}
	}
	return names, nil
}

// calibrateOne measures one transport with a chain of its own.
func (a *app) calibrateOne(ctx context.Context, n *node.Node, name string, opts measureOptions) (inventory.Calibration, error) {
	var none inventory.Calibration
	source := calibrate.Chain(name)
	c, err := chain.Parse("calibration of "+name, source)
	if err != nil {
		return none, err
	}
	j := chainrun.Job{Chain: c, Source: source, Node: n}
	if j.Inventory, err = a.inspectFor(ctx, c, n); err != nil {
		return none, err
	}
	if j.Plan, err = plan.Make(c, j.Inventory); err != nil {
		return none, err
	}
	if opts.out != "" {
		opts.out = filepath.Join(opts.out, name)
	}
	r, err := a.newRun(ctx, j, opts)
	if err != nil {
		return none, err
	}
	r.Options.EveryTraffic = true
	a.progress("Calibrating %s", name)
	live, err := n.Create(ctx, "calibrate", c, source, j.Plan)
	if err != nil {
		return none, err
	}
	if err = r.Begin(live); err == nil {
		err = r.Links(ctx, live)
	}
	a.endProgress()
	if err = errors.Join(err, live.Remove(context.WithoutCancel(ctx))); err != nil {
		return none, errors.Join(err, r.Close())
	}
	if _, err := r.Finish(live, exitOK, false); err != nil {
		return none, errors.Join(err, r.Close())
	}
	records := filepath.Join(r.Path, report.RecordsFile)
	trials, _, err := record.ReadFile(records)
	if err != nil {
		return none, err
	}
	calibration, err := calibrate.FromTrials(name, records, time.Now().UTC(), trials)
	calibration.Kernel, calibration.CPUModel = j.Inventory.Host.Kernel, j.Inventory.Host.CPUModel
	return calibration, errors.Join(err, r.Close())
}
