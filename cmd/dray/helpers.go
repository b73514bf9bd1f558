// SPDX-License-Identifier: Apache-2.0

package main

import (
	"github.com/spf13/cobra"

	"github.com/drayage/dray/internal/function/docker"
	"github.com/drayage/dray/internal/link/afpacket"
	"github.com/drayage/dray/internal/measure/spinner"
)

// relayCommand is the process behind an af-packet uplink.
func (a *app) relayCommand() *cobra.Command {
	return &cobra.Command{
		Use:                "relay",
		Short:              "Pass frames between an uplink and a port (run by `dray up`)",
		Hidden:             true,
		DisableFlagParsing: true,
		RunE:               func(cmd *cobra.Command, argv []string) error { return afpacket.RelayMain(cmd.Context(), argv) },
	}
}

// spinCommand keeps CPUs busy while a function's compute is measured.
func (a *app) spinCommand() *cobra.Command {
	return &cobra.Command{
		Use:                "spin",
		Short:              "Keep CPUs busy and measure them (run by `dray run`)",
		Hidden:             true,
		DisableFlagParsing: true,
		RunE: func(cmd *cobra.Command, argv []string) error {
			return spinner.Main(argv, cmd.InOrStdin(), cmd.OutOrStdout())
		},
	}
}

// pauseCommand holds the namespaces of a docker function.
func (a *app) pauseCommand() *cobra.Command {
	return &cobra.Command{
		Use:    "pause",
		Short:  "Hold a container's namespaces (run in containers)",
		Hidden: true,
		Args:   args(cobra.NoArgs),
		Run:    func(*cobra.Command, []string) { docker.Pause() },
	}
}
