// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/drayage/dray/internal/spec/dpdk"
	"github.com/drayage/dray/internal/spec/release"
)

// version names this build in records.
var version = release.Version()

// versionInfo is `dray version --json`'s output.
type versionInfo struct {
	Version string `json:"version"`
	Date    string `json:"date,omitempty"`
	Driver  string `json:"driver,omitempty"`   // the file of net_dray, if it is installed
	DPDKABI string `json:"dpdk_abi,omitempty"` // that the driver was built for
}

func (a *app) versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version, its date and the DPDK ABI of the driver",
		Args:  args(cobra.NoArgs),
		RunE:  func(*cobra.Command, []string) error { return a.printVersion() },
	}
}

func (a *app) printVersion() error {
	info := versionInfo{Version: release.Version(), Date: release.Date()}
	if file, err := dpdk.FindDriver(); err == nil {
		if info.DPDKABI, err = dpdk.ABI(file); err == nil {
			info.Driver = file
		}
	}
	if a.json {
		return a.printJSON(schemaVersion, info)
	}
	fmt.Fprintln(a.out, release.Text("dray"))
	if info.Driver != "" {
		fmt.Fprintf(a.out, "net_dray: DPDK ABI %s, %s\n", info.DPDKABI, info.Driver)
	}
	return nil
}
