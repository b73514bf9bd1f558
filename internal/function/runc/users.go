// SPDX-License-Identifier: Apache-2.0

package runc

import (
	"context"
	"fmt"
	"hash/fnv"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/drayage/dray/internal/host"
)

// Functions map to these host ids: ranges of 65,536 above the ids that people and
// /etc/subuid use, below those that systemd reserves (systemd.io/UIDS-GIDS).
const (
	firstHostID = 0x10000000
	endHostID   = 0x70000000
	rangeSize   = 65536
)

// claimUserRange gives the function a range of host ids that no other function of
// its chain has, and records it in l.userRange. The range derives from seed, so
// that it is the same at each `dray up`.
func claimUserRange(ctx context.Context, l layout, seed string) (host.UserMapping, error) {
	parent, err := os.Open(filepath.Dir(l.dir))
	if err != nil {
		return host.UserMapping{}, err
	}
	defer parent.Close() // also unlocks
	if err := host.Lock(ctx, parent, unix.LOCK_EX); err != nil {
		return host.UserMapping{}, err
	}
	taken, err := takenUserRanges(parent.Name())
	if err != nil {
		return host.UserMapping{}, err
	}
	id := chooseUserRange(seed, taken)
	if err := os.WriteFile(l.userRange(), []byte(strconv.Itoa(id)), 0o600); err != nil {
		return host.UserMapping{}, err
	}
	return host.UserMapping{HostID: id, Size: rangeSize}, nil
}

// chooseUserRange is the first host id of the range.
func chooseUserRange(seed string, taken map[int]bool) int {
	const ranges = (endHostID - firstHostID) / rangeSize
	h := fnv.New64a()
	h.Write([]byte(seed))
	for i := int(h.Sum64() % ranges); ; i = (i + 1) % ranges {
		if id := firstHostID + i*rangeSize; !taken[id] {
			return id
		}
	}
}

func takenUserRanges(parent string) (map[int]bool, error) {
	files, err := filepath.Glob(filepath.Join(parent, "*", userRangeFile))
	if err != nil {
		return nil, err
	}
	taken := map[int]bool{}
	for _, file := range files {
		m, err := readUserRange(file)
		if os.IsNotExist(err) {
			continue // its function was removed meanwhile
		}
		if err != nil {
			return nil, err
		}
		taken[m.HostID] = true
	}
	return taken, nil
}

func readUserRange(file string) (host.UserMapping, error) {
	b, err := os.ReadFile(file)
	if err != nil {
		return host.UserMapping{}, err
	}
	id, err := strconv.Atoi(strings.TrimSpace(string(b)))
	if err != nil || id < firstHostID || id >= endHostID {
		return host.UserMapping{}, fmt.Errorf("%s: %q is not the start of a range of user ids", file, b)
	}
	return host.UserMapping{HostID: id, Size: rangeSize}, nil
}
