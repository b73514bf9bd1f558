// SPDX-License-Identifier: Apache-2.0

package main

import (
	"github.com/spf13/cobra"

	"github.com/drayage/dray/internal/spec/manifest"
)

func (a *app) exportCommand() *cobra.Command {
	var kubernetes bool
	cmd := &cobra.Command{
		Use:   "export --kubernetes FILE",
		Short: "Convert a chain file into a Kubernetes manifest",
		Long: "Print the Kubernetes object Chain (drayage.io/v1alpha1) for a chain file. A pod decides the image, the command\n" +
			"and the limits of a function, so the object lacks them; comments at the top list what was left out, and how a pod\n" +
			"gets its ports. A chain that needs what pods cannot have, such as network interfaces or uplinks, is refused.\n" +
			"FILE - is standard input.",
		Example: "  dray export --kubernetes examples/native/echo.yaml | kubectl apply -f -",
		Args:    args(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, argv []string) error {
			if !kubernetes {
				return usageError("name the format: dray export --kubernetes %s", argv[0])
			}
			return a.export(cmd, argv[0])
		},
	}
	cmd.Flags().BoolVar(&kubernetes, "kubernetes", false, "write a Kubernetes manifest")
	return cmd
}

func (a *app) export(cmd *cobra.Command, file string) error {
	if file == "-" {
		file = standardInput
	}
	data, err := readFile(cmd.Context(), file)
	if err != nil {
		return err
	}
	m, err := manifest.Make(file, data)
	if err != nil {
		return err
	}
	if a.json {
		return a.printJSON(schemaManifest, m)
	}
	_, err = a.out.Write([]byte(m.YAML))
	return err
}
