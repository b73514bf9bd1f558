// SPDX-License-Identifier: Apache-2.0

package child

import (
	"context"
	"errors"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/drayage/dray/internal/host"
)

// TestAHangingProcessIsKilledAndNamed: its command has ended, and it keeps
// running.
func TestAHangingProcessIsKilledAndNamed(t *testing.T) {
	defer func(before time.Duration) { endPatience = before }(endPatience)
	endPatience = 50 * time.Millisecond
	c, err := Start(host.Place{}, exec.Command("sleep", "1000"), nil)
	if err != nil {
		t.Fatal(err)
	}
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	asked := false
	err = c.End(ended, func() error { asked = true; return nil })
	if !asked || err == nil || !strings.Contains(err.Error(), "sleep (process ") || !strings.Contains(err.Error(), "was killed") {
		t.Errorf("asked %v, and End: %v", asked, err)
	}
	if code, waited := c.Wait(); code != 128+9 || waited == nil || !strings.Contains(waited.Error(), "was killed") {
		t.Errorf("Wait: status %d, %v", code, waited)
	}
}

// TestAProcessThatIsStoppedInTimeIsNoError: nor is it killed twice.
func TestAProcessThatIsStoppedInTimeIsNoError(t *testing.T) {
	c, err := Start(host.Place{}, exec.Command("sleep", "1000"), nil)
	if err != nil {
		t.Fatal(err)
	}
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	if err := c.End(ended, func() error { return KillSession(c.PID()) }); err != nil {
		t.Error(err)
	}
	if code, err := c.Wait(); code != 128+9 || err != nil {
		t.Errorf("Wait: status %d, %v", code, err)
	}
}

// TestAnEngineThatHangsIsGivenUp, by name; an interrupt is no fault of the engine.
func TestAnEngineThatHangsIsGivenUp(t *testing.T) {
	defer func(before time.Duration) { startLimit = before }(startLimit)
	startLimit = 10 * time.Millisecond
	hangs := func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
	if err := AwaitStart(context.Background(), "runc", hangs); !errors.Is(err, context.DeadlineExceeded) || !strings.HasPrefix(err.Error(), "runc hangs") {
		t.Errorf("got %v", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := AwaitStart(ctx, "runc", hangs); !errors.Is(err, context.Canceled) {
		t.Errorf("interrupted: %v", err)
	}
	if err := AwaitStart(context.Background(), "runc", func(context.Context) error { return nil }); err != nil {
		t.Error(err)
	}
}
