// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/drayage/dray/internal/spec/layout"
	"github.com/drayage/dray/internal/spec/sol001"
)

const importLong = `Print the chain file for a descriptor of ETSI GS NFV-SOL 001: a network service descriptor (NSD) or a VNF descriptor
(VNFD) in TOSCA YAML, a CSAR package, or the folder of an unpacked one. VDUs, or the VNFs of an NSD, become functions,
connection points become ports, and virtual links become links with their requirements. Standard error lists what a chain
file cannot say, with line and column. Imports are read from files of the package, or of the descriptor's folder; the
type files of SOL001 are not needed. FILE - is standard input.`

func (a *app) importCommand() *cobra.Command {
	var flavour string
	cmd := &cobra.Command{
		Use:     "import FILE",
		Short:   "Convert an ETSI SOL001 descriptor into a chain file",
		Long:    importLong,
		Example: "  dray import nsd.yaml > chain.yaml\n  dray import vnf.csar --flavour scalable\n  dray import vnf.csar --json",
		Args:    args(cobra.ExactArgs(1)),
		RunE:    func(cmd *cobra.Command, argv []string) error { return a.importDescriptor(cmd, argv[0], flavour) },
	}
	cmd.Flags().StringVar(&flavour, "flavour", "", "the deployment flavour of a VNFD with several")
	return cmd
}

func (a *app) importDescriptor(cmd *cobra.Command, file, flavour string) error {
	src, err := a.openDescriptor(cmd, file)
	if err != nil {
		return err
	}
	got, err := sol001.Import(src, flavour)
	if err := src.Close(); err != nil {
		return err
	}
	if err != nil {
		return err
	}
	if a.json {
		return a.printJSON(schemaImport, got)
	}
	a.leftOut(got.LeftOut, "the chain file")
	_, err = a.out.Write([]byte(got.YAML))
	return err
}

func (a *app) openDescriptor(cmd *cobra.Command, file string) (*sol001.Source, error) {
	if file != "-" {
		return sol001.Open(file)
	}
	data, err := readFile(cmd.Context(), standardInput)
	if err != nil {
		return nil, err
	}
	return sol001.Text(standardInput, data)
}

// leftOut lists what a conversion left out of its result, one line each.
func (a *app) leftOut(notes []sol001.Note, result string) {
	if len(notes) == 0 {
		return
	}
	fmt.Fprintf(a.err, "dray: warning: %s differs from its source:\n", result)
	for _, n := range notes {
		fmt.Fprintln(a.err, layout.PlainLines(n.String()))
	}
}
