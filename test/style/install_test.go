// SPDX-License-Identifier: Apache-2.0

package style

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"testing"
)

// TestInstalledUnit: the unit that make install installs starts the dray that it installs, and
// anybody can read it.
func TestInstalledUnit(t *testing.T) {
	for prefix, args := range map[string][]string{"/usr/local": nil, "/usr": {"PREFIX=/usr"}, "/opt/dray": {"PREFIX=/opt/dray/"}} {
		dir := t.TempDir()
		cmd := exec.Command("sh", append([]string{"-c", `umask 077; exec make --no-print-directory -C "$0" install-unit "$@"`, root, "DESTDIR=" + dir}, args...)...)
		cmd.Env = slices.DeleteFunc(os.Environ(), func(v string) bool { return regexp.MustCompile("^(MAKE|MFLAGS|PREFIX|DESTDIR)").MatchString(v) })
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		unit := filepath.Join(dir, prefix, "lib/systemd/system/dray@.service")
		text, err := os.ReadFile(unit)
		if err != nil {
			t.Fatal(err)
		}
		var lines []string
		for _, line := range regexp.MustCompile(`(?m)^Exec.*$`).FindAll(text, -1) {
			lines = append(lines, string(line))
		}
		dray := prefix + "/bin/dray"
		want := []string{"ExecStartPre=-" + dray + " gc --leftovers", "ExecStart=" + dray + " up /etc/drayage/%i.yaml", "ExecStop=" + dray + " down %i"}
		info, err := os.Stat(unit)
		if err != nil || info.Mode().Perm() != 0o644 || !slices.Equal(lines, want) {
			t.Errorf("below %s: %q, %v, %v", prefix, lines, info.Mode(), err)
		}
	}
	makefile, err := os.ReadFile(filepath.Join(root, "Makefile"))
	if err != nil || !regexp.MustCompile(`(?m)^install:.* install-unit\b`).Match(makefile) {
		t.Errorf("make install does not install the unit: %v", err)
	}
}
