// SPDX-License-Identifier: Apache-2.0

package dpdk

import "github.com/drayage/dray/internal/spec/library"

// DriverFile is the file name of net_dray.
const DriverFile = "librte_net_dray.so"

// FindDriver returns the file of net_dray. An error is a *library.Error.
func FindDriver() (string, error) {
	return library.Library{What: "the DPDK driver", File: DriverFile, Build: "make pmd", Installed: driverDirs}.Find()
}
