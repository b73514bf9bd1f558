// SPDX-License-Identifier: Apache-2.0

package dpdk

import (
	"debug/elf"
	"fmt"
	"strings"
)

// ABI is the DPDK ABI number that the file of a driver or a program was linked against:
// 23 for DPDK 22.11, 25 for 24.11.
func ABI(file string) (string, error) {
	f, err := elf.Open(file)
	if err != nil {
		return "", err
	}
	defer f.Close()
	libraries, err := f.ImportedLibraries()
	if err != nil {
		return "", err
	}
	for _, library := range libraries {
		if abi, ok := strings.CutPrefix(library, "librte_ethdev.so."); ok {
			return abi, nil
		}
	}
	return "", fmt.Errorf("%s is not linked against DPDK", file)
}
