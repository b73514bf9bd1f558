// SPDX-License-Identifier: Apache-2.0

package child

import "testing"

func TestHugetlbPath(t *testing.T) {
	for name, test := range map[string]struct{ text, want string }{
		"v1":     {"11:cpu,cpuacct:/a\n4:hugetlb:/b\n0::/c\n", "/b"},
		"v2":     {"0::/dray/c/du/run\n", "/dray/c/du/run"},
		"hybrid": {"4:memory:/dray/c/du/run\n0::/dray/c/du.engine\n", "/dray/c/du.engine"},
		"empty":  {"", ""},
	} {
		if got := hugetlbPath(test.text); got != test.want {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}
