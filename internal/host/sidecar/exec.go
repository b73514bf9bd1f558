// SPDX-License-Identifier: Apache-2.0

package sidecar

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
)

// outputGrace is how long a tool's output may be held open after its end.
const outputGrace = 5 * time.Second

// Exec runs a program beside the process, as confined as that is, to its end, and
// returns what it prints. It is the way to talk to a process that hostile
// applications talk to as well.
func (p Process) Exec(ctx context.Context, args ...string) (string, error) {
	cmd, err := p.container().Command(ctx, "exec", append([]string{p.Name}, args...)...)
	if err != nil {
		return "", err
	}
	var out, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr, cmd.WaitDelay = &out, &stderr, outputGrace
	err = p.runcPlace().Start(cmd)
	if err == nil {
		err = cmd.Wait()
	}
	if err != nil {
		return "", fmt.Errorf("%s: %w: %s", strings.Join(args, " "), errors.Join(err, ctx.Err()), bytes.TrimSpace(stderr.Bytes()))
	}
	return strings.TrimSpace(out.String()), nil
}
