// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestEveryGuaranteeNamesATest looks for the tests that docs/security.md names: each row
// of its guarantees has one, and each is in the repository.
func TestEveryGuaranteeNamesATest(t *testing.T) {
	_, rest, _ := strings.Cut(read(t, "docs/security.md"), "## Guarantees\n")
	section, _, ok := strings.Cut(rest, "\n## ")
	if !ok {
		t.Fatal("docs/security.md has no guarantees")
	}
	rows := 0
	for _, line := range strings.Split(section, "\n") {
		cells := strings.Split(line, "|")
		if len(cells) != 7 || strings.HasPrefix(line, "|---") || strings.Contains(line, "shown by") {
			continue
		}
		rows++
		named := regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(cells[5], -1)
		if len(named) == 0 {
			t.Errorf("no test shows: %s cannot %s", strings.TrimSpace(cells[1]), strings.TrimSpace(cells[2]))
		}
		for _, m := range named {
			if !exists(t, m[1]) {
				t.Errorf("docs/security.md names %s, which is no test of this repository", m[1])
			}
		}
	}
	if rows < 10 {
		t.Errorf("only %d guarantees were found", rows)
	}
}

// exists reports whether a test has this name: a path, perhaps with *, or what a test
// file contains as a function or as the name of a subtest.
func exists(t *testing.T, name string) bool {
	t.Helper()
	if strings.HasSuffix(name, ".c") || strings.HasSuffix(name, ".txt") {
		found, err := filepath.Glob(filepath.Join(root, name))
		return err == nil && len(found) > 0
	}
	wanted := `"` + name + `"`
	if strings.HasPrefix(name, "Test") {
		wanted = "func " + strings.Split(name, "/")[0] + "("
	}
	grep := exec.Command("git", "-c", "safe.directory=*", "grep", "--quiet", "--untracked", "--fixed-strings", wanted, "--", "*_test.go", "internal/function/runtimetest")
	grep.Dir, grep.Stderr = root, os.Stderr
	return grep.Run() == nil
}
