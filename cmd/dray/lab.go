// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/drayage/dray/internal/function/lab"
)

const labLong = `Run a command where the kernel has what it needs. Where this host's kernel has
it, the command runs here. Else it runs in a virtual machine with Debian's
kernel (or, with --rt, its PREEMPT_RT kernel), which sees this host's files and
programs: what it writes is lost, but for the folder that --out names. Records
that are made there carry the mark "lab", and "emulated" where the machine has no
KVM: such figures are never compared with native ones.`

func (a *app) labCommand() *cobra.Command {
	var needs lab.Needs
	var out string
	cmd := &cobra.Command{
		Use:   "lab [flags] -- COMMAND [ARGUMENT...]",
		Short: "Run a command on a kernel that has what it needs, in a guest if need be",
		Long:  labLong + "\n\nFeatures: " + strings.Join(lab.Features(), ", ") + ".",
		Example: "  dray lab --need hfsc -- tc qdisc add dev lo root hfsc\n" +
			"  dray lab --rt --out out/lab -- dray plan examples/f1-split.yaml",
		Args: args(cobra.MinimumNArgs(1)),
		RunE: func(cmd *cobra.Command, argv []string) error {
			if argv[0] == "dray" {
				own, err := os.Executable()
				if err != nil {
					return err
				}
				argv[0] = own
			}
			r, err := lab.Run(cmd.Context(), needs, lab.Command{
				Argv: argv, OutDir: out, Stdin: os.Stdin, Stdout: a.out, Stderr: a.err,
				Progress: func(text string) { a.progress("Lab: %s", text) },
			})
			if err != nil {
				return err
			}
			if r.Exit != exitOK {
				return &codeError{Code: r.Exit}
			}
			return nil
		},
	}
	cmd.Flags().StringSliceVar(&needs.Features, "need", nil, "a feature that the kernel must have; may be repeated")
	cmd.Flags().BoolVar(&needs.RT, "rt", false, "the kernel must be PREEMPT_RT")
	cmd.Flags().BoolVar(&needs.Guest, "guest", false, "use a guest also where this host has everything")
	cmd.Flags().StringVar(&out, "out", "", "folder in which the command leaves its results")
	return cmd
}
