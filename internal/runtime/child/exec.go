// SPDX-License-Identifier: Apache-2.0

package child

import (
	"context"
	"fmt"
	"os"
	"time"
)

// AwaitExec waits until a container's first process has become the function's
// command. Until then it is `runc init`, which swallows signals. One that has
// ended is no error.
func AwaitExec(ctx context.Context, pid int) error {
	const interval = time.Millisecond
	for {
		args, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		if err != nil || string(args) != "runc\x00init\x00" {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(interval):
		}
	}
}
