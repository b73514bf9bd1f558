// SPDX-License-Identifier: Apache-2.0

package published

import (
	"context"
	"fmt"
	"slices"
	"syscall"
	"time"

	"github.com/drayage/dray/internal/host"
	"github.com/drayage/dray/internal/node"
)

// waiting is a command that starts with SIGUSR1, and ignores another one: its first output may take a while, and until
// then it looks as if it still waits.
func waiting(command string) string {
	return fmt.Sprintf(`sh, -c, "trap : USR1; echo %s; sleep infinity & wait; trap '' USR1; exec \"$@\"", sh, %s`, ready, command)
}

// wake starts the command of a function that waits.
func wake(ctx context.Context, live *node.Live, function string) error {
	process, err := processOf(ctx, live, function)
	if err != nil {
		return err
	}
	if !process.Signal(syscall.SIGUSR1) {
		return fmt.Errorf("function %s ended before it was to start", function)
	}
	return nil
}

// awaitTick is how often a condition is looked at.
const awaitTick = 25 * time.Millisecond

// awaitRunning waits until something holds, as long as all functions run but one that may have ended.
func awaitRunning(ctx context.Context, live *node.Live, gone string, patience time.Duration, what string, holds func() bool) error {
	for began := time.Now(); !holds(); {
		functions, _, err := live.Status()
		if err != nil {
			return err
		}
		if i := slices.IndexFunc(functions, func(f node.FunctionStatus) bool { return f.Phase == node.PhaseFailed && f.Name != gone }); i >= 0 {
			return fmt.Errorf("function %s ended; its last output: %s", functions[i].Name, live.LogTail(functions[i].Name, 2))
		}
		if time.Since(began) > patience {
			return fmt.Errorf("not within %v: %s", patience, what)
		}
		if err := host.Sleep(ctx, awaitTick); err != nil {
			return err
		}
	}
	return nil
}
