// SPDX-License-Identifier: Apache-2.0

package published

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"

	"github.com/drayage/dray/internal/spec/chain"
)

// syscallTable are the files that list a 64-bit kernel's system calls.
const syscallTable = "/usr/include/*-linux-gnu/asm/unistd_64.h"

var syscallLine = regexp.MustCompile(`(?m)^#define __NR_(\w+)\s+\d+`)

// droppedSyscalls counts the table's system calls that a function's filter never
// permits; text gives the total. A conditionally permitted call counts as
// permitted.
func droppedSyscalls(state, chainName string, rt chain.RuntimeName) (dropped int, text string, err error) {
	if rt != chain.RuntimeRunc {
		return 0, "", fmt.Errorf("only runtime runc keeps its filter where it can be read")
	}
	tables, err := filepath.Glob(syscallTable)
	if err != nil || len(tables) == 0 {
		return 0, "", errors.New("the table of system calls is missing (apt-get install linux-libc-dev)")
	}
	table, err := os.ReadFile(tables[0])
	if err != nil {
		return 0, "", err
	}
	configs, err := filepath.Glob(filepath.Join(state, chainName, "fn", neighbourName, "bundles", "*", "config.json"))
	if err != nil || len(configs) == 0 {
		return 0, "", errors.New("the function's bundle is not there")
	}
	config, err := os.ReadFile(configs[0])
	if err != nil {
		return 0, "", err
	}
	permitted, err := permittedSyscalls(config)
	if err != nil {
		return 0, "", err
	}
	all := syscallLine.FindAllSubmatch(table, -1)
	for _, m := range all {
		if !permitted[string(m[1])] {
			dropped++
		}
	}
	if len(all) == 0 || dropped == len(all) {
		return 0, "", fmt.Errorf("%s and the function's filter have no call in common", tables[0])
	}
	return dropped, fmt.Sprintf("system calls: the filter permits %d of the %d in %s\n", len(all)-dropped, len(all), tables[0]), nil
}

// permittedSyscalls are the calls that a bundle's filter permits, perhaps
// conditionally. It refuses a filter that permits by default.
func permittedSyscalls(config []byte) (map[string]bool, error) {
	var bundle struct {
		Linux struct {
			Seccomp *struct {
				DefaultAction string
				Syscalls      []struct {
					Names  []string
					Action string
				}
			}
		}
	}
	if err := json.Unmarshal(config, &bundle); err != nil {
		return nil, err
	}
	filter := bundle.Linux.Seccomp
	if filter == nil || filter.DefaultAction != "SCMP_ACT_ERRNO" {
		return nil, errors.New("the function's filter permits calls that it does not name")
	}
	permitted := map[string]bool{}
	for _, rule := range filter.Syscalls {
		for _, name := range rule.Names {
			permitted[name] = permitted[name] || rule.Action == "SCMP_ACT_ALLOW"
		}
	}
	return permitted, nil
}
