// SPDX-License-Identifier: Apache-2.0

package docker

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/drayage/dray/internal/function/dockercli"
	"github.com/drayage/dray/internal/host/step"
	"github.com/drayage/dray/test/testenv"
)

// TestADaemonThatHangsIsNotWaitedFor: removing a function's containers ends, and
// names the daemon that does not answer.
func TestADaemonThatHangsIsNotWaitedFor(t *testing.T) {
	testenv.Root(t)
	defer func(before time.Duration) { dockercli.AnswerLimit = before }(dockercli.AnswerLimit)
	dockercli.AnswerLimit = 50 * time.Millisecond
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "docker"), []byte("#!/bin/sh\nexec /bin/sleep 1000\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir)
	socket := filepath.Join(dir, "docker.sock")
	if err := os.WriteFile(socket, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	err := removeContainers(context.Background(), step.Resource{
		Kind: KindContainer, Name: "x", Path: "/dray-test-hang/x", Host: "unix://" + socket,
	})
	if err == nil || !strings.Contains(err.Error(), "the daemon at unix://"+socket+" does not answer within") {
		t.Errorf("got %v", err)
	}
}
