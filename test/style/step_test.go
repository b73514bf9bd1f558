// SPDX-License-Identifier: Apache-2.0

package style

import (
	"os/exec"
	"strings"
	"testing"
)

// TestAFailedStepSaysWhatToDo: scripts/step.sh is silent about a step that works. If one fails, it prints the end of what the
// tool said, the step's name and what to do, and exits with the tool's status.
func TestAFailedStepSaysWhatToDo(t *testing.T) {
	for name, c := range map[string]struct{ script, want string }{
		"works":          {"echo fine", ""},
		"missing header": {"echo 'x.c:1:10: fatal error: x.h: No such file or directory'; echo ' 1 | #include <x.h>'; exit 7", "scripts/setup.sh"},
		"full disk":      {"echo 'ninja: fatal: No space left on device' >&2; exit 7", "free some space: "},
		"syntax error":   {"echo '[1/2] Compiling x.c'; seq 30; echo 'x.c:1:1: error: expected ;'; exit 7", "correct what the lines above name"},
	} {
		t.Run(name, func(t *testing.T) {
			var out, errs strings.Builder
			step := exec.Command("../../scripts/step.sh", "build x", "sh", "-c", c.script)
			step.Stdout, step.Stderr = &out, &errs
			_ = step.Run() // the exit status is checked below
			says := errs.String()
			if out.Len() > 0 || (step.ProcessState.ExitCode() == 7) != (c.want != "") || !strings.Contains(says, c.want) {
				t.Errorf("status %d, said %q", step.ProcessState.ExitCode(), says)
			}
			if c.want != "" && (!strings.Contains(says, "error: the step 'build x' failed: sh ended with exit status 7\nfix: ") || strings.Count(says, "\n") > 22 || strings.Contains(says, "Compiling")) {
				t.Errorf("said %q", says)
			}
		})
	}
}
