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
	Why         string // the application needs so much
}

func (e *MemoryError) Error() string {
	return fmt.Sprintf("%s %v is too little for a DPDK application: give it %v or more", e.Limit, e.Has, e.Needed)
}

// CheckMemory returns a *MemoryError if EAL, with that command, cannot work within the
// function's limits.
func (a Application) CheckMemory(argv []string) error {
	limit, has, least, asked := "hugepages", a.pages(), units.Bytes(leastPages), asked(argv)
	why := "EAL and the packets of two ports take 20 MB"
	switch {
	case len(a.HugePages) == 0 && a.Memory == 0:
		return nil
	case len(a.HugePages) == 0:
		limit, has, least = "memory", a.Memory, leastMemory
	case a.Uses(NetMPRing) && asked == 0:
		least, why = 2*leastPages, why+", and it begins with half of its huge pages"
	}
	switch {
	case has < least:
		return &MemoryError{Limit: limit, Has: has, Needed: least, Why: "a DPDK application needs more: " + why}
	case asked > has:
		return &MemoryError{Limit: limit, Has: has, Needed: asked, Why: "its command asks EAL for more (-m, --socket-mem)"}
	}
	return nil
}

// asked is the memory that a command asks EAL for: by the last -m among EAL's arguments, or,
// for each NUMA node, by the last --socket-mem; 0: none.
func asked(argv []string) (bytes units.Bytes) {
	i := slices.Index(argv, Argument)
	for ; i >= 0 && i < len(argv) && argv[i] != "--"; i++ {
		for _, option := range []string{"-m", "--socket-mem"} {
			value, given := strings.CutPrefix(argv[i], option)
			if given && value == "" && i+1 < len(argv) {
				value = argv[i+1]
			}
			if sum, ok := mebibytes(strings.TrimPrefix(value, "=")); given && ok {
				bytes = sum
			}
		}
	}
	return bytes
}

// mebibytes is the sum of numbers with commas between them.
func mebibytes(list string) (sum units.Bytes, ok bool) {
	for _, word := range strings.Split(list, ",") {
		n, err := strconv.ParseUint(word, 10, 32)
		if err != nil {
			return 0, false
		}
		sum += units.Bytes(n << 20)
	}
	return sum, true
}

// pages is the limit of the function's huge pages together.
func (a Application) pages() (bytes units.Bytes) {
	for _, h := range a.HugePages {
		bytes += h.Limit
	}
	return bytes
}
