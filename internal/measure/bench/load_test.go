// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"strings"
	"testing"
	"time"
)

func TestRateAt(t *testing.T) {
	for _, c := range []struct {
		pdr     float64
		percent int
		want    uint64
	}{
		{1_000_001, 0, 1000}, {1_000_001, 10, 100_000}, {1_000_001, 50, 500_001}, {1_000_001, 90, 900_001},
		{20_000, 0, 200}, // an idle link, even if 1000 packets/s are a load
		{1, 99, 1},
	} {
		if got, err := rateAt(c.pdr, c.percent, time.Second); err != nil || got != c.want {
			t.Errorf("%d %% of %.0f packets/s: %d, %v; want %d", c.percent, c.pdr, got, err, c.want)
		}
	}
	for pdr, percent := range map[float64]int{0: 90, 149: 0, 4: 10} {
		if got, err := rateAt(pdr, percent, 500*time.Millisecond); err == nil || !strings.Contains(err.Error(), "less than one packet") {
			t.Errorf("%d %% of %.0f packets/s: %d, %v", percent, pdr, got, err)
		}
	}
}
