// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
)

// TestASecondInterruptEndsAtOnce, and says how to remove what is left. Another process is
// interrupted.
func TestASecondInterruptEndsAtOnce(t *testing.T) {
	const variable = "DRAY_TEST_INTERRUPTED"
	if left := os.Getenv(variable); left != "" {
		ctx, _ := interruptible(left)
		for range 2 {
			if err := syscall.Kill(os.Getpid(), syscall.SIGINT); err != nil {
				t.Fatal(err)
			}
			<-ctx.Done()
		}
		select {} // ends by the second
	}
	for _, left := range []string{leftByDray, leftByKubectl} {
		cmd := exec.Command(os.Args[0], "-test.run=^TestASecondInterruptEndsAtOnce$")
		cmd.Env = append(os.Environ(), variable+"="+left)
		out, err := cmd.CombinedOutput()
		var exit *exec.ExitError
		if !errors.As(err, &exit) || exit.ExitCode() != 130 || !strings.Contains(string(out), "ended at once: "+left+"\n") {
			t.Errorf("%v: %s", err, out)
		}
	}
	if isKubectl("/usr/bin/dray") || !isKubectl("/usr/bin/kubectl-dray") {
		t.Error("dray takes itself for kubectl's plugin, or the other way round")
	}
}
