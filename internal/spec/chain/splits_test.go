// SPDX-License-Identifier: Apache-2.0

package chain

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// TestTheGuideHasTheBudgetsOfSplits compares its table with ours.
func TestTheGuideHasTheBudgetsOfSplits(t *testing.T) {
	guide, err := os.ReadFile("../../../docs/placement.md")
	if err != nil {
		t.Fatal(err)
	}
	words := strings.NewReplacer("ms", " ms", "us", " µs", "Gbps", " Gb/s")
	for _, b := range SplitBudgets {
		rate := "no bitrate"
		if b.Bitrate > 0 {
			rate = b.Bitrate.String()
		}
		if row := fmt.Sprintf("%s, %s |", words.Replace(b.Latency.String()), words.Replace(rate)); !hasRow(string(guide), string(b.Split), row) {
			t.Errorf("docs/placement.md has no row of option %s that ends with %q", b.Split, row)
		}
	}
}

func hasRow(text, first, end string) bool {
	for _, line := range strings.Split(text, "\n") {
		if strings.HasPrefix(line, "| "+first+" |") && strings.HasSuffix(line, end) {
			return true
		}
	}
	return false
}
