// SPDX-License-Identifier: Apache-2.0

package eal

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/drayage/dray/internal/spec/dpdk"
	"github.com/drayage/dray/internal/spec/library"
)

// driver is the file of net_dray for a program's DPDK. library.Variable names a folder
// of the container's own with it.
func driver(program string) (string, error) {
	if os.Getenv(library.Variable) != "" {
		return dpdk.FindDriver()
	}
	abi, err := root("/").abiOf(program)
	if err != nil {
		return "", err
	}
	return driverFor(DriversInside, program, abi)
}

// driverFor is the driver in a node's folder of drivers.
func driverFor(drivers, program, abi string) (string, error) {
	file := filepath.Join(drivers, abi, dpdk.DriverFile)
	_, err := os.Stat(file)
	if !errors.Is(err, fs.ErrNotExist) {
		return file, err
	}
	var has []string
	found, err := filepath.Glob(filepath.Join(drivers, "*", dpdk.DriverFile))
	for _, f := range found {
		has = append(has, dpdk.Release(filepath.Base(filepath.Dir(f))))
	}
	return "", errors.Join(fmt.Errorf("%s uses %s, and this node has the driver %s only for %s: use that DPDK, or put a driver for yours into the image and set %s to its folder",
		filepath.Base(program), dpdk.Release(abi), dpdk.NetDray, strings.Join(has, ", "), library.Variable), err)
}

// root is a root file system.
type root string

// libraryDirs are where a container may have DPDK's libraries.
var libraryDirs = []string{"lib*", "lib/*", "usr/lib*", "usr/lib/*", "usr/local/lib*", "usr/local/lib/*"}

// abiOf is the DPDK ABI number of a program. A program that is not linked
// against DPDK, such as a script, starts one that uses the DPDK of the container.
func (r root) abiOf(program string) (string, error) {
	if abi, err := dpdk.ABI(program); err == nil {
		return abi, nil
	}
	const ethdev = "librte_ethdev.so."
	var abis []string
	for _, dir := range libraryDirs {
		files, err := filepath.Glob(filepath.Join(string(r), dir, ethdev+"*"))
		if err != nil {
			return "", err
		}
		for _, f := range files {
			abi, _, _ := strings.Cut(strings.TrimPrefix(filepath.Base(f), ethdev), ".")
			abis = append(abis, abi)
		}
	}
	slices.Sort(abis)
	abis = slices.Compact(abis)
	switch len(abis) {
	case 0:
		return "", fmt.Errorf("%s is not linked against DPDK's shared libraries, and the image has none: a program that contains DPDK cannot load a driver", program)
	case 1:
		return abis[0], nil
	}
	return "", fmt.Errorf("%s is not linked against DPDK, and the image has several versions of it (%s): set %s to the folder of a driver, such as %s",
		program, strings.Join(abis, ", "), library.Variable, filepath.Join(DriversInside, abis[0]))
}
