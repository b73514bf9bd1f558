// SPDX-License-Identifier: Apache-2.0

package main

import (
	"github.com/spf13/cobra"

	"github.com/drayage/dray/internal/spec/manifest"
	"github.com/drayage/dray/internal/spec/sol001"
)

const exportLong = `Convert a chain file. FILE - is standard input.

With --kubernetes, print the Kubernetes object Chain (drayage.io/v1alpha1). A pod decides the image, the command and the
limits of a function, so the object lacks them; comments at the top list what was left out, and how a pod gets its ports.
A chain that needs what pods cannot have, such as network interfaces or uplinks, is refused.

With --sol001, print a VNF descriptor (VNFD) of ETSI GS NFV-SOL 001, version ` + sol001.Version + `, in TOSCA YAML. Functions become
VDUs, ports connection points, and links virtual links with their requirements; an uplink is an external connection point.
Standard error lists what a descriptor cannot say, with line and column. dray import reads it back.`

func (a *app) exportCommand() *cobra.Command {
	var kubernetes, descriptor bool
	cmd := &cobra.Command{
		Use:     "export {--kubernetes | --sol001} FILE",
		Short:   "Convert a chain file into a Kubernetes manifest or an ETSI descriptor",
		Long:    exportLong,
		Example: "  dray export --kubernetes examples/native/echo.yaml | kubectl apply -f -\n  dray export --sol001 examples/f1-split.yaml > vnfd.yaml",
		Args:    args(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, argv []string) error {
			switch {
			case kubernetes == descriptor:
				return usageError("name one format: dray export --kubernetes %s, or dray export --sol001 %[1]s", argv[0])
			case kubernetes:
				return a.exportManifest(cmd, argv[0])
			}
			return a.exportDescriptor(cmd, argv[0])
		},
	}
	cmd.Flags().BoolVar(&kubernetes, "kubernetes", false, "write a Kubernetes manifest")
	cmd.Flags().BoolVar(&descriptor, "sol001", false, "write a VNF descriptor of ETSI GS NFV-SOL 001")
	return cmd
}

// readChain is the text of a chain file, and its name.
func readChain(cmd *cobra.Command, file string) (string, []byte, error) {
	if file == "-" {
		file = standardInput
	}
	data, err := readFile(cmd.Context(), file)
	return file, data, err
}

func (a *app) exportManifest(cmd *cobra.Command, file string) error {
	file, data, err := readChain(cmd, file)
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

func (a *app) exportDescriptor(cmd *cobra.Command, file string) error {
	file, data, err := readChain(cmd, file)
	if err != nil {
		return err
	}
	d, err := sol001.Export(file, data)
	if err != nil {
		return err
	}
	if a.json {
		return a.printJSON(schemaDescriptor, d)
	}
	a.leftOut(d.LeftOut, "the descriptor")
	_, err = a.out.Write([]byte(d.YAML))
	return err
}
