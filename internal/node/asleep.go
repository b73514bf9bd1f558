// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"fmt"
	"os"
	"syscall"
	"time"

	"github.com/drayage/dray/internal/host"
	"github.com/drayage/dray/internal/link/transport"
)

// longestSleep is how long polling threads may sleep. Beyond it, they wait for something
// that will not happen: the switch rings the bell of a hostile end with a write that
// blocks, for example.
const longestSleep = 10 * time.Second

// endIfAsleep kills the process, so that it is restarted, once its polling threads have
// slept for that long. It returns when the process is killed or ctx ends.
func endIfAsleep(ctx context.Context, p transport.Process, longest time.Duration) {
	var mark string
	since := time.Now()
	for host.Sleep(ctx, longest/10) == nil {
		now := p.ID.SleepMark(p.Polls)
		if now == "" || now != mark {
			mark, since = now, time.Now()
			continue
		}
		if time.Since(since) >= longest {
			logHang(p, longest)
			p.ID.Signal(syscall.SIGKILL)
			return
		}
	}
}

// logHang adds the reason to the process's log.
func logHang(p transport.Process, slept time.Duration) {
	f, err := os.OpenFile(p.Log, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return // the restart is published anyway
	}
	defer f.Close()
	fmt.Fprintf(f, "dray: %s hangs: its polling threads have slept for %v; it is killed\n", p.Name, slept)
}
