// SPDX-License-Identifier: Apache-2.0

package host

import "testing"

func TestParseThreadStat(t *testing.T) {
	const after = " R 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31 32 33 34 35 7 0"
	for stat, want := range map[string]struct {
		id   int
		name string
		cpu  int
		ok   bool
	}{
		"42 (worker)" + after:     {42, "worker", 7, true},
		"42 (a) (b 1) 2)" + after: {42, "a) (b 1) 2", 7, true},
		"42 (worker) R 1 2":       {},
		"42 worker R" + after:     {},
		"x (worker)" + after:      {0, "worker", 7, false},
		")(":                      {},
		"":                        {},
	} {
		id, name, cpu, ok := parseThreadStat(stat)
		if ok != want.ok || ok && (id != want.id || name != want.name || cpu != want.cpu) {
			t.Errorf("%q: %d, %q, %d, %v", stat, id, name, cpu, ok)
		}
	}
}
