// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/spf13/cobra"

	"github.com/drayage/dray/internal/link/broker"
)

func (a *app) daemonCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "daemon CHAIN",
		Short: "Serve the native ports of a chain, in the foreground",
		Long: "Serve the native ports of a chain that is up, until a signal: make and seal the memory of its links, hand it\n" +
			"to the functions, and watch them. `dray up` and `dray run` start one such broker for each chain that needs\n" +
			"it, and start it again when it ends; by hand it is of use where that supervisor is gone, or to see what the\n" +
			"broker has to say. Traffic goes on while no broker runs, and the next one adopts the links as they are.",
		Example: "  dray daemon f1-split-native",
		Args:    args(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, argv []string) error {
			n, err := a.node()
			if err != nil {
				return err
			}
			dir := n.BrokerDir(argv[0])
			if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
				return fmt.Errorf("chain %s is not up, or has no native ports: `dray status` lists the chains that are", argv[0])
			} else if err != nil {
				return err
			}
			return broker.Serve(cmd.Context(), broker.Options{
				Dir:   dir,
				Log:   a.err,
				Ready: func() { a.progress("Serving the native ports of %s", argv[0]) },
			})
		},
	}
}
