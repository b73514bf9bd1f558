// SPDX-License-Identifier: Apache-2.0

package child

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/drayage/dray/internal/host"
)

// namelessPatience bounds how long a process may have no arguments.
const namelessPatience = 10 * time.Second

// AwaitExec waits until a container's first process has become the function's
// command. Until then it is `runc init`, which swallows signals. A process that
// has ended is no error.
//
// During execve its first thread can be a zombie with empty arguments: it looks
// ended, but is not.
func AwaitExec(ctx context.Context, pid int) error {
	return AwaitStart(ctx, "the container engine", func(ctx context.Context) error { return awaitExec(ctx, pid) })
}

func awaitExec(ctx context.Context, pid int) error {
	const interval = time.Millisecond
	for begin := time.Now(); ; {
		args, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		if err != nil || len(args) > 0 && !isRuncInit(string(args)) {
			return nil
		}
		if len(args) == 0 && time.Since(begin) > namelessPatience {
			return nil
		}
		if err := host.Sleep(ctx, interval); err != nil {
			return err
		}
	}
}

// isRuncInit checks the NUL-terminated arguments. The first is how runc was
// called: a name or a path.
func isRuncInit(args string) bool {
	program, rest, _ := strings.Cut(args, "\x00")
	return filepath.Base(program) == "runc" && rest == "init\x00"
}
