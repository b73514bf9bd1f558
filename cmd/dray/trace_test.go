// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"syscall"
	"testing"

	"github.com/drayage/dray/internal/measure/trace"
)

// The help of an option names the values that it takes.
func TestTraceHelpNamesLimits(t *testing.T) {
	var out bytes.Buffer
	if err := run(context.Background(), []string{"trace", "--help"}, &out, &out); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"100ms to 1m", "2 to 1000", "0bps: 1000 small packets"} {
		holds(t, "dray trace --help", strings.Join(strings.Fields(out.String()), " "), want)
	}
}

// A load that is too low has the exit code of a wrong option.
func TestTooLittleLoadIsWrongUsage(t *testing.T) {
	few := &trace.LoadError{Path: "dl", Load: 1}
	if err := asUsage(fmt.Errorf("trace: %w", few)); codeOf(err) != exitUsage || !errors.Is(err, few) {
		t.Errorf("%v has code %d", err, codeOf(err))
	}
	if err := asUsage(errors.New("other")); codeOf(err) != exitError {
		t.Errorf("%v has code %d", err, codeOf(err))
	}
}

// A signal ends a trace with words of its own, not those of a context.
func TestInterruptedTraceSaysHowFarItCame(t *testing.T) {
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(signalError{syscall.SIGINT})
	if worthShowing(ctx, 1) || !worthShowing(ctx, 2) || worthShowing(context.Background(), 2) {
		t.Error("an interrupted trace is shown from two rounds on, and a failed one never")
	}
	err := ended(ctx, interruptedTrace("dl", 3, 20))
	if got := err.Error(); got != "interrupted after 3 of 20 rounds of path dl" || codeOf(err) != 130 {
		t.Errorf("%q with code %d", got, codeOf(err))
	}
}
