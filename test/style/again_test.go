// SPDX-License-Identifier: Apache-2.0

package style

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestFailedTestsRunOnceMore: scripts/again.sh repeats the tests that failed, each in its package, and nothing after what is
// no accident.
func TestFailedTestsRunOnceMore(t *testing.T) {
	const failures = "--- FAIL: TestA (0.1s)\n    --- FAIL: TestA/x (0.1s)\n--- PASS: TestB (0s)\n--- FAIL: TestC (0s)\nFAIL\nFAIL\tm/p\t1s\n" +
		"--- PASS: TestA (0s)\nPASS\nok  \tm/q\t1s\n--- FAIL: TestD (0s)\nFAIL\nFAIL\tm/r\t1s\nFAIL\n"
	for name, c := range map[string]struct{ log, command, runs, says string }{
		"passes alone":    {failures, "true", "-run ^(TestA|TestC)$ m/p\n-run ^(TestD)$ m/r\n", "passed alone:\nm/p TestA|TestC\nm/r TestD\n"},
		"fails again":     {failures, "false", "-run ^(TestA|TestC)$ m/p\n-run ^(TestD)$ m/r\n", ""},
		"a data race":     {"WARNING: DATA RACE\n" + failures, "true", "", ""},
		"a panic":         {failures + "panic: no\n", "true", "", ""},
		"not compiled":    {failures + "FAIL\tm/s [build failed]\n", "true", "", ""},
		"no test's fault": {"FAIL\tm/p\t1s\n", "true", "", ""},
		"too many":        {"--- FAIL: TestX (0s)\n" + failures, "true", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			log, ran := filepath.Join(t.TempDir(), "log"), filepath.Join(t.TempDir(), "ran")
			if err := os.WriteFile(log, []byte(c.log), 0o600); err != nil {
				t.Fatal(err)
			}
			out, err := exec.Command("../../scripts/again.sh", log, "sh", "-c", `echo "$@" >>"$0"; `+c.command, ran).CombinedOutput()
			got, _ := os.ReadFile(ran) // none: nothing ran
			if (err == nil) != (c.says != "") || string(got) != c.runs || !strings.HasSuffix(string(out), c.says) {
				t.Errorf("%v, ran %q: %s", err, got, out)
			}
		})
	}
}

// TestFailedCTestsRunOnceMore is the same of dataplane/again.sh.
func TestFailedCTestsRunOnceMore(t *testing.T) {
	const stalled = "out/port-tsan/test.txt:36/41 both_sleep       TIMEOUT        360.02s   killed by signal 15 SIGTERM\n"
	const failures = "36/41 both_sleep       TIMEOUT        360.02s   killed by signal 15 SIGTERM\n" + stalled +
		"out/port-tsan/test.txt-stdout:\nout/gen-plain/test.txt: 9/22 wire    ERROR    8.26s   exit status 1\n"
	const runs = "-C out/gen-plain wire\n-C out/port-tsan both_sleep\n"
	for name, c := range map[string]struct{ log, ends, runs, says string }{
		"passes alone":    {failures, "true", runs, "passed alone:\nout/gen-plain wire\nout/port-tsan both_sleep\n"},
		"fails again":     {failures, "false", runs, ""},
		"a sanitizer":     {failures + "out/gen-asan/test.txt:1/22 basic ERROR 1.20s   exit status 99\n", "true", "", ""},
		"not compiled":    {failures + "FAIL  building out/iq-plain\n", "true", "", ""},
		"no test's fault": {"ok    lint\n", "true", "", ""},
		"too many":        {failures + strings.ReplaceAll(failures, "out/", "out/other-"), "true", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			log, ran := filepath.Join(dir, "log"), filepath.Join(dir, "ran")
			meson := "#!/bin/sh\nfor last; do :; done\necho \"$2 $3 $last\" >>" + ran + "\n" + c.ends + "\n"
			for path, text := range map[string]string{log: c.log, filepath.Join(dir, "meson"): meson} {
				if err := os.WriteFile(path, []byte(text), 0o700); err != nil {
					t.Fatal(err)
				}
			}
			again := exec.Command("../../dataplane/again.sh", log)
			again.Env = append(os.Environ(), "PATH="+dir+":"+os.Getenv("PATH"))
			out, err := again.CombinedOutput()
			got, _ := os.ReadFile(ran) // none: nothing ran
			if (err == nil) != (c.says != "") || string(got) != c.runs || !strings.HasSuffix(string(out), c.says) {
				t.Errorf("%v, ran %q: %s", err, got, out)
			}
		})
	}
}
