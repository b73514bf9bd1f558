// SPDX-License-Identifier: Apache-2.0

package prepare

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/drayage/dray/internal/spec/units"
)

const (
	// wantedHugePages is enough for a few DPDK functions.
	wantedHugePages = 1 << 30
	// shareOfMemory is the part of all memory that they may take without being asked for.
	shareOfMemory = 8
	page2M        = 2 << 20
	page1G        = 1 << 30
)

// DefaultHugePages is 1 GiB in pages of 2 MiB, or an eighth of a small machine's
// memory.
func (s *System) DefaultHugePages() []Pages {
	bytes := min(wantedHugePages, s.memory("MemTotal")/shareOfMemory)
	return []Pages{{Size: page2M, Count: int(bytes / page2M)}}
}

// memory is a line of /proc/meminfo in bytes; 0 if there is none.
func (s *System) memory(name string) uint64 {
	text, err := os.ReadFile(filepath.Join(s.root, "proc/meminfo"))
	if err != nil {
		return 0
	}
	for _, line := range strings.Split(string(text), "\n") {
		if rest, ok := strings.CutPrefix(line, name+":"); ok {
			kib, _ := strconv.ParseUint(strings.TrimSpace(strings.TrimSuffix(rest, "kB")), 10, 54)
			return kib << 10
		}
	}
	return 0
}

// planHugePages adds missing pages. It never takes pages away: programs may use them.
func (s *System) planHugePages(report *Report, wanted []Pages) error {
	if len(wanted) == 0 {
		report.skip("hugepages", "not asked for")
	}
	available := s.memory("MemAvailable")
	for _, pages := range wanted {
		key := Key{Kind: kindHugePages, Size: pages.Size}
		now, err := s.read(key.file())
		if missing(err) {
			report.skip(key.String(), "this kernel has no pages of that size")
			continue
		}
		if err != nil {
			return err
		}
		have, err := strconv.Atoi(now)
		if err != nil {
			return fmt.Errorf("%s: %w", key, err)
		}
		if have >= pages.Count {
			report.skip(key.String(), "there are %d already", have)
			continue
		}
		if more := uint64(pages.Count-have) * pages.Size; more > available/2 {
			report.refuse(key, now, strconv.Itoa(pages.Count), "this would take %s more, and half of the %s available: ask for fewer with --hugepages",
				units.Bytes(more), units.Bytes(available>>20<<20))
			continue
		}
		report.want(key, now, strconv.Itoa(pages.Count))
	}
	return nil
}
