// SPDX-License-Identifier: Apache-2.0

package dpdk

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/drayage/dray/internal/spec/units"
)

// leastMemory is the smallest memory limit, in bytes, for which an application is
// started, and leastPages the smallest of its huge pages, which hold only EAL's memory: EAL
// and the packets of two ports take 20 MB.
const (
	leastMemory = 64 << 20
	leastPages  = 20 << 20
)

// MemoryError says that a function's limit is too small for a DPDK application.
type MemoryError struct {
	Limit       string // the field of the chain file: "memory" or "hugepages"
	Has, Needed units.Bytes
}

func (e *MemoryError) Error() string {
	return fmt.Sprintf("%s %v is too little for a DPDK application: give it %v or more", e.Limit, e.Has, e.Needed)
}

// CheckMemory returns a *MemoryError if EAL cannot work within the function's limits.
func (a Application) CheckMemory() error {
	switch pages := a.pages(); {
	case len(a.HugePages) > 0 && pages < leastPages:
		return &MemoryError{Limit: "hugepages", Has: pages, Needed: leastPages}
	case len(a.HugePages) == 0 && a.Memory > 0 && a.Memory < leastMemory:
		return &MemoryError{Limit: "memory", Has: a.Memory, Needed: leastMemory}
	}
	return nil
}

// CheckCommand returns a *MemoryError if a command asks EAL itself for more memory than the
// function has: by -m after Argument, of which EAL takes the last.
func (a Application) CheckCommand(argv []string) error {
	limit, has := "memory", a.Memory
	if len(a.HugePages) > 0 {
		limit, has = "hugepages", a.pages()
	}
	if asked := asked(argv); has > 0 && asked > has {
		return &MemoryError{Limit: limit, Has: has, Needed: asked}
	}
	return nil
}

// asked is the memory of the last -m among EAL's arguments of a command; 0: none.
func asked(argv []string) (bytes units.Bytes) {
	i := slices.Index(argv, Argument)
	for ; i >= 0 && i < len(argv) && argv[i] != "--"; i++ {
		value, given := strings.CutPrefix(argv[i], "-m")
		if given && value == "" && i+1 < len(argv) {
			value = argv[i+1]
		}
		if mebibytes, err := strconv.ParseUint(value, 10, 32); given && err == nil {
			bytes = units.Bytes(mebibytes << 20)
		}
	}
	return bytes
}

// pages is the limit of the function's huge pages together.
func (a Application) pages() (bytes units.Bytes) {
	for _, h := range a.HugePages {
		bytes += h.Limit
	}
	return bytes
}
