// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/drayage/dray/internal/function/guest"
	"github.com/drayage/dray/internal/function/lab"
)

const labLong = `Run a command on a kernel and machine with the features it needs. If this host
has them, the command runs here. Otherwise it runs in a virtual machine with
Debian's kernel (with --rt, Debian's PREEMPT_RT kernel). The machine sees this
host's files and programs, but everything it writes is lost, except in the folder
that --out names. Records made there carry the mark "lab", and also "emulated" if
the machine has no KVM: such figures are never compared with native ones.`

func (a *app) labCommand() *cobra.Command {
	var needs lab.Needs
	var out string
	var rt bool
	cmd := &cobra.Command{
		Use:   "lab [flags] -- COMMAND [ARGUMENT...]",
		Short: "Run a command on a kernel with the features it needs, in a guest if necessary",
		Long:  labLong + "\n\nFeatures: " + strings.Join(lab.Features(), ", ") + ".",
		Example: "  dray lab --need hfsc -- tc qdisc add dev lo root hfsc\n" +
			"  dray lab --rt --out out/lab -- dray plan examples/f1-split.yaml",
		Args: args(cobra.MinimumNArgs(1)),
		RunE: func(cmd *cobra.Command, argv []string) error {
			if rt {
				needs.Kernel = guest.Realtime
			}
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
	cmd.Flags().StringSliceVar(&needs.Features, "need", nil, "a feature that kernel and machine must have (repeatable)")
	cmd.Flags().BoolVar(&rt, "rt", false, "the kernel must be PREEMPT_RT")
	cmd.Flags().BoolVar(&needs.Guest, "guest", false, "use a guest even if this host has every feature")
	cmd.Flags().StringVar(&out, "out", "", "folder for the command's results")
	return cmd
}
