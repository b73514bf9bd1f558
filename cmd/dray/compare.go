// SPDX-License-Identifier: Apache-2.0

package main

import (
	"github.com/spf13/cobra"

	"github.com/drayage/dray/internal/result/compare"
)

const compareLong = `Set run B against run A, figure by figure, from their records alone. A run is a
directory that dray run, dray verify or dray bench made, or a records file; the
two may come from different hosts.

Each figure comes with the ratio of B to A, or their difference, and its 95 %
interval over the trials. Where the interval covers no change, the two are
indistinguishable. Trials of one run share its conditions, so that their spread
does not show how far two runs differ by themselves: further runs of what A ran,
given with --same, do, and a difference within that is indistinguishable too.
Four of them make a useful limit, and one a very wide one.

Emulated figures are not compared with native ones, nor those of different
instruments. The exit code is 0 also where the runs differ. docs/method.md
explains each statistic.`

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
		Short:   "Tell what differs between two runs, and what cannot be told apart",
		Long:    compareLong,
		Example: compareExample,
		Args:    args(cobra.RangeArgs(1, 2)),
		RunE: func(cmd *cobra.Command, argv []string) error {
			if a.json {
				if cmd.Flags().Changed("format") && format != formatJSON {
					return usageError("--json and --format %s exclude each other", format)
				}
				format = formatJSON
			}
			return a.compare(format, argv, same)
		},
	}
	cmd.Flags().StringArrayVar(&same, "same", nil, "a further run of what A ran, to learn how far two runs differ by themselves (repeatable)")
	cmd.Flags().StringVar(&format, "format", formatText, "text, json, or benchstat: Go's benchmark format, of A alone or of both")
	return cmd
}

func (a *app) compare(format string, paths, same []string) error {
	switch format {
	case formatText, formatJSON:
		if len(paths) != 2 {
			return usageError("compare takes two runs; one alone can only be exported, with --format benchstat")
		}
	case formatBenchstat:
		if len(same) > 0 {
			return usageError("--same decides what is indistinguishable, which --format benchstat leaves to benchstat")
		}
	default:
		return usageError("--format %s: there are %s, %s and %s", format, formatText, formatJSON, formatBenchstat)
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
