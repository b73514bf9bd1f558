// SPDX-License-Identifier: Apache-2.0

package style

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestRepositoryFollowsTheRules(t *testing.T) {
	for _, name := range trackedFiles(t) {
		content, err := os.ReadFile(filepath.Join(root, name))
		if os.IsNotExist(err) {
			continue // deleted, but not yet committed
		}
		if err != nil {
			t.Fatal(err)
		}
		for _, sentence := range Check(name, content) {
			t.Error(sentence)
		}
	}
}

func TestEachRuleCatches(t *testing.T) {
	head := "// " + licence + "\n\npackage x\n"
	for _, tc := range []struct {
		name, file, content, want string
	}{
		{"no licence line", "x.go", "package x\n", "lack"},
		{"no licence line in a script", "run", "#!/bin/sh\n", "lack"},
		{"long file", "x.go", head + strings.Repeat("\n", maxFile), "split it"},
		{"long function", "x.go", head + "func f() {\n" + strings.Repeat("\n", maxFunction) + "}\n", "function f has"},
		{"long test", "x_test.go", head + "func f() {\n" + strings.Repeat("\n", maxTest) + "}\n", "function f has"},
		{"unfinished work", "x.go", head + "// TO" + "DO: later\n", "x.go:4"},
		{"path of one machine", "x.md", "see /wo" + "rk/main\n", "x.md:1"},
		{"broken syntax", "x.go", head + "func {\n", "expected"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got := Check(tc.file, []byte(tc.content))
			if len(got) != 1 || !strings.Contains(got[0], tc.want) {
				t.Errorf("got %q, want one sentence with %q", got, tc.want)
			}
		})
	}
}

func TestWhatIsPermittedPasses(t *testing.T) {
	function := "func f() {\n" + strings.Repeat("\n", maxFunction-2) + "}\n"
	for name, content := range map[string]string{
		"x.go":            "// " + licence + "\n\npackage x\n\n" + function,
		"x.yaml":          "# " + licence + "\n# " + generated + "x.go\n" + strings.Repeat("a: 1\n", maxFile),
		"testdata/x.yaml": "a: 1\n",
		"examples/x.yaml": "a: 1\n",
		"x.json":          "{}\n",
		"LICENSE":         "Apache\n",
	} {
		if got := Check(name, []byte(content)); len(got) > 0 {
			t.Errorf("%s refused: %q", name, got)
		}
	}
}

// root is the repository.
const root = "../.."

func trackedFiles(t *testing.T) []string {
	t.Helper()
	cmd := exec.Command("git", "-c", "safe.directory=*", "ls-files")
	cmd.Dir = root
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("git ls-files: %v", err)
	}
	names := strings.Split(strings.TrimSpace(string(out)), "\n")
	if len(names) < 10 {
		t.Fatalf("git lists only %d files", len(names))
	}
	// What a symbolic link leads to is tracked itself.
	return slices.DeleteFunc(names, func(name string) bool {
		info, err := os.Lstat(filepath.Join(root, name))
		return err == nil && info.Mode().Type() == os.ModeSymlink
	})
}
