// SPDX-License-Identifier: Apache-2.0

package dockercli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// TestAChildOfTheClientIsNotWaitedFor: a command that has timed out ends even if a
// child holds the client's output.
func TestAChildOfTheClientIsNotWaitedFor(t *testing.T) {
	defer func(before time.Duration) { outputGrace = before }(outputGrace)
	outputGrace = 50 * time.Millisecond
	dir := t.TempDir()
	file := filepath.Join(dir, "pid")
	script := fmt.Sprintf("#!/bin/sh\n/bin/sleep 100 &\necho $! >%s\nwait\n", file)
	if err := os.WriteFile(filepath.Join(dir, "docker"), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	ended := make(chan error, 1)
	go func() {
		_, err := Client{Host: DefaultHost}.Output(ctx, "version")
		ended <- err
	}()
	child := 0
	for end := time.Now().Add(time.Minute); child == 0; time.Sleep(10 * time.Millisecond) {
		if text, err := os.ReadFile(file); err == nil {
			_, _ = fmt.Sscan(string(text), &child) // it is empty at first
		}
		if time.Now().After(end) {
			t.Fatal("the client has not started its child")
		}
	}
	cancel()
	err := <-ended
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if err := syscall.Kill(child, syscall.SIGKILL); err != nil {
		t.Errorf("the command waited for its child: %v", err)
	}
}
