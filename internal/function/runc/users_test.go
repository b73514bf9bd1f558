// SPDX-License-Identifier: Apache-2.0

package runc

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/drayage/dray/test/testenv"
)

func TestChooseUserRangeAvoidsTaken(t *testing.T) {
	taken := map[int]bool{}
	for range 1000 { // one seed: each collides with all before
		id := chooseUserRange("chain/du", taken)
		if taken[id] || id < firstHostID || id+rangeSize > endHostID || id%rangeSize != 0 {
			t.Fatalf("range %#x, taken %v", id, taken[id])
		}
		taken[id] = true
	}
	if first, second := chooseUserRange("a/du", nil), chooseUserRange("a/du", nil); first != second {
		t.Errorf("the same function got %#x, then %#x", first, second)
	}
	if chooseUserRange("a/du", nil) == chooseUserRange("b/du", nil) {
		t.Error("functions of one name in two chains got one range")
	}
}

// TestClaimUserRange lets functions with one seed claim concurrently.
func TestClaimUserRange(t *testing.T) {
	base := t.TempDir()
	const functions = 20
	var wg sync.WaitGroup
	ids := make([]int, functions)
	for i := range functions {
		dir := filepath.Join(base, fmt.Sprint("f", i))
		testenv.Must(t, os.Mkdir(dir, 0o711))
		wg.Add(1)
		go func() {
			defer wg.Done()
			m, err := claimUserRange(context.Background(), layout{dir: dir}, "same")
			if err != nil {
				t.Error(err)
			}
			ids[i] = m.HostID
		}()
	}
	wg.Wait()
	seen := map[int]bool{}
	for i, id := range ids {
		if seen[id] {
			t.Errorf("range %#x is claimed twice", id)
		}
		seen[id] = true
		m, err := readUserRange(layout{dir: filepath.Join(base, fmt.Sprint("f", i))}.userRange())
		if err != nil || m.HostID != id {
			t.Errorf("noted %#x, claimed %#x (%v)", m.HostID, id, err)
		}
	}
}

func TestReadUserRangeRefusesNonsense(t *testing.T) {
	file := filepath.Join(t.TempDir(), userRangeFile)
	for _, content := range []string{"", "0", "-1", "4294967295", "root"} {
		testenv.Must(t, os.WriteFile(file, []byte(content), 0o600))
		if m, err := readUserRange(file); err == nil {
			t.Errorf("%q was read as %#x", content, m.HostID)
		}
	}
}
