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

// outputGrace is how long a tool's output may stay open after it.
const outputGrace = 5 * time.Second

// Exec runs a program next to the process, with the same confinement, until it
// ends. It returns the output. Use it to query a process that hostile applications
// also talk to.
func (p Process) Exec(ctx context.Context, args ...string) (string, error) {
	cmd, err := p.container().Command(ctx, "exec", append([]string{p.Name}, args...)...)
	if err != nil {
		return "", err
	}
	var out, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr, cmd.WaitDelay = &out, &stderr, outputGrace
	err = p.Beside().Start(cmd)
	if err == nil {
		err = cmd.Wait()
	}
	if err != nil {
		return "", fmt.Errorf("%s: %w: %s", strings.Join(args, " "), errors.Join(err, ctx.Err()), bytes.TrimSpace(stderr.Bytes()))
	}
	return strings.TrimSpace(out.String()), nil
}
