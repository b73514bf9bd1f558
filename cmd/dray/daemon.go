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
		Long: "Run the broker of a chain that is up, until a signal: create and seal the memory of its native links, hand it\n" +
			"to the functions, and watch them. `dray up` and `dray run` start a broker for each chain that needs one, and\n" +
			"restart it if it ends. Start one by hand only if the supervisor is gone, or to read the broker's log. Traffic\n" +
			"continues while no broker runs, and the next broker adopts the links as they are.",
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
