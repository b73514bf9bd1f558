// SPDX-License-Identifier: Apache-2.0

package main

import (
	"github.com/spf13/cobra"

	"github.com/drayage/dray/internal/result/compare"
)

const compareLong = `Compare run B with run A, figure by figure, from their records alone. A run is a
directory that dray run, dray verify or dray bench made, or a records file. The
two may come from different hosts.

Each figure comes with the ratio of B to A, or their difference, and its 95 %
interval over the trials. If the interval includes no change, the two are
indistinguishable. The trials of one run share its conditions, so their spread
does not show how much two identical runs differ. For that, give more runs of
what A ran with --same: a difference no larger than theirs is indistinguishable
too. Four such runs give a useful limit; one gives a very wide one.

Emulated figures are never compared with native ones, and different instruments
never with each other. The exit code is 0 even if the runs differ.
docs/method.md explains each statistic.`

const compareExample = `  dray compare out/monday out/tuesday
  dray compare out/veth out/shm --same out/veth-2 --same out/veth-3
  dray compare out/host-a/records.jsonl out/host-b/records.jsonl --json
  dray compare out/monday --format benchstat >monday.txt
  dray compare out/monday out/tuesday --format benchstat >both.txt`

// Formats of dray compare.
const (
	formatText      = "text"
	formatJSON      = "json"
	formatBenchstat = "benchstat"
)

func (a *app) compareCommand() *cobra.Command {
	var same []string
	format := formatText
	cmd := &cobra.Command{
		Use:     "compare A [B]",
		Short:   "Compare two runs figure by figure, with confidence intervals",
		Long:    compareLong,
		Example: compareExample,
		Args:    args(cobra.RangeArgs(1, 2)),
		RunE: func(cmd *cobra.Command, argv []string) error {
			if a.json {
				if cmd.Flags().Changed("format") && format != formatJSON {
					return usageError("--json and --format %s cannot be combined", format)
				}
				format = formatJSON
			}
			return a.compare(format, argv, same)
		},
	}
	cmd.Flags().StringArrayVar(&same, "same", nil, "another run of what A ran, to learn how much two identical runs differ (repeatable)")
	cmd.Flags().StringVar(&format, "format", formatText, "text, json, or benchstat: Go's benchmark format, of A alone or of both")
	return cmd
}

func (a *app) compare(format string, paths, same []string) error {
	switch format {
	case formatText, formatJSON:
		if len(paths) != 2 {
			return usageError("name two runs to compare; a single run can only be exported, with --format benchstat")
		}
	case formatBenchstat:
		if len(same) > 0 {
			return usageError("--same has no effect with --format benchstat: benchstat itself decides what is indistinguishable")
		}
	default:
		return usageError("--format %s: use %s, %s or %s", format, formatText, formatJSON, formatBenchstat)
	}
	var runs []*compare.Run
	for _, path := range append(append([]string{}, paths...), same...) {
		r, err := compare.Load(path)
		if err != nil {
			return err
		}
		runs = append(runs, r)
	}
	if format == formatBenchstat {
		return compare.WriteBenchmarks(a.out, runs...)
	}
	c, err := compare.Compare(runs[0], runs[1], runs[2:]...)
	if err != nil {
		return err
	}
	if format == formatJSON {
		return a.printPage(schemaComparison, c.JSON)
	}
	return a.printText(c.Text)
}
