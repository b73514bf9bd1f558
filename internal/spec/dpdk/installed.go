// SPDX-License-Identifier: Apache-2.0

package dpdk

import (
	"fmt"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/drayage/dray/internal/spec/inventory"
	"github.com/drayage/dray/internal/spec/library"
)

// driverDirs are the driver folders of Debian and of DPDK's own installation. Each has
// a subfolder with the DPDK ABI number.
var driverDirs = []string{"/usr/lib/*/dpdk/pmds-*", "/usr/local/lib/*/dpdk/pmds-*", "/usr/local/lib/dpdk/pmds-*"}

// Probe reports whether this host's DPDK has the driver, such as NetMemif; the
// functions' own root file systems may have another DPDK.
func Probe(name, driver string) inventory.Item {
	return probe(driverDirs, name, driver)
}

func probe(dirs []string, name, driver string) inventory.Item {
	item := inventory.Item{Name: name, Status: inventory.Missing}
	found := library.Folders(dirs...)
	for _, folder := range found {
		abi := strings.TrimPrefix(filepath.Base(folder), "pmds-")
		files, err := filepath.Glob(filepath.Join(folder, "librte_"+driver+".so*"))
		if err == nil && len(files) > 0 {
			item.Status, item.Version = inventory.OK, Release(abi)
			return item
		}
	}
	if err := library.Searchable(); err != nil {
		item.Status, item.Reason = inventory.Unknown, err.Error()
		return item
	}
	item.Reason = fmt.Sprintf("DPDK's driver %s is not installed", driver)
	item.Fix = "apt-get install dpdk"
	if len(found) == 0 {
		item.Reason = "DPDK is not installed"
	}
	return item
}

// Release is the DPDK version of an ABI: number 23 is release 22.11 and all compatible
// releases.
func Release(abi string) string {
	major, _, _ := strings.Cut(abi, ".")
	n, err := strconv.Atoi(major)
	if err != nil {
		return "DPDK with the binary interface " + abi
	}
	return fmt.Sprintf("DPDK %d.11", n-1)
}

// ProbeDriver reports whether net_dray can be loaded on this host.
func ProbeDriver() inventory.Item {
	item := inventory.Item{Name: NetDray, Status: inventory.Missing}
	file, err := FindDriver()
	if err != nil {
		item.Reason = err.Error()
		if why, ok := err.(*library.Error); ok {
			item.Reason, item.Fix = why.Reason, why.Fix
		}
		return item
	}
	item.Status, item.Version = inventory.OK, file
	return item
}
