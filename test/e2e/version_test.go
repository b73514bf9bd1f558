// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/drayage/dray/test/testenv"
)

// TestEveryProgramPrintsItsVersion compares each program's output with VERSION and
// the source date.
func TestEveryProgramPrintsItsVersion(t *testing.T) {
	text, err := os.ReadFile("../../VERSION")
	if err != nil {
		t.Fatal(err)
	}
	script := exec.Command("../../scripts/build-date.sh")
	script.Env = append(os.Environ(), "SOURCE_DATE_EPOCH=86400")
	date, err := script.Output()
	if err != nil || strings.TrimSpace(string(date)) != "1970-01-02" {
		t.Errorf("build-date.sh prints %q of SOURCE_DATE_EPOCH=86400, error %v", date, err)
	}
	version := regexp.QuoteMeta(strings.TrimSpace(string(text))) + `(\+[0-9a-f]+(-dirty)?)? \(\d{4}-\d\d-\d\d`
	for _, name := range []string{"dray", "dray-guest", "draygen", "draygen-dpdk", "dray-limit", "dray-vnf"} {
		shown := strings.TrimSuffix(name, "-dpdk")
		want := regexp.MustCompile(`^` + shown + ` ` + version + `\)`)
		if name == "draygen-dpdk" || name == "dray-vnf" {
			want = regexp.MustCompile(`^` + shown + ` ` + version + `, DPDK ABI \d+\)`)
		}
		out, err := exec.Command(testenv.Built(t, name), "--version").Output()
		if err != nil || !want.Match(out) {
			t.Errorf("%s --version prints %q, error %v; want %s", name, out, err, want)
		}
	}
	out, err := exec.Command(testenv.Built(t, "dray"), "version").Output()
	if driver := filepath.Join(filepath.Dir(testenv.Built(t, "dray")), "librte_net_dray.so"); err != nil || !strings.Contains(string(out), "DPDK ABI ") ||
		!strings.Contains(string(out), driver) {
		t.Errorf("dray version does not say which DPDK ABI %s has: %q, error %v", driver, out, err)
	}
}
