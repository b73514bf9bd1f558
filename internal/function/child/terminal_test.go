// SPDX-License-Identifier: Apache-2.0

package child

import (
	"bytes"
	"os/exec"
	"strings"
	"testing"

	"github.com/drayage/dray/internal/function/runtime"
	"github.com/drayage/dray/internal/host"
)

// TestAForwarderGetsEveryKey: Ctrl-C is a byte for what it forwards to, and no signal.
func TestAForwarderGetsEveryKey(t *testing.T) {
	var out bytes.Buffer
	stdio := runtime.Stdio{Stdin: strings.NewReader("\x03x"), Stdout: &out, Terminal: &runtime.Terminal{}}
	c, err := StartForwarder(host.Place{}, exec.Command("sh", "-c", "head -c 2 | od -An -tx1"), stdio, nil)
	if err != nil {
		t.Fatal(err)
	}
	if code, err := c.Wait(); code != 0 || err != nil || strings.TrimSpace(out.String()) != "03 78" {
		t.Errorf("status %d, %v, and it read %q", code, err, out.String())
	}
}
