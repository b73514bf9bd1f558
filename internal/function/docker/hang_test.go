// SPDX-License-Identifier: Apache-2.0

package docker

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/drayage/dray/internal/function/dockercli"
	"github.com/drayage/dray/internal/function/runtime"
	"github.com/drayage/dray/internal/host/step"
	"github.com/drayage/dray/internal/spec/chain"
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

// TestOnlyTheDaemonKnowsThatAFunctionIsGone: a check that fails otherwise says nothing of it.
func TestOnlyTheDaemonKnowsThatAFunctionIsGone(t *testing.T) {
	defer func(before time.Duration) { dockercli.AnswerLimit = before }(dockercli.AnswerLimit)
	dockercli.AnswerLimit = testenv.Patient(10 * time.Second)
	dir := t.TempDir()
	t.Setenv("PATH", dir)
	rt := New(Options{Client: dockercli.Client{Host: "unix:///no/such/socket"}})
	for script, want := range map[string]bool{
		"echo 7": false, // and it is not gone
		"echo 0": true,
		"echo 'Error response from daemon: No such container: x' >&2; exit 1":                                true,
		"echo 'dial unix /no/such/socket: connect: no such file or directory' >&2; exit 1":                   false,
		"echo 'Cannot connect to the Docker daemon at unix:///x. Is the docker daemon running?' >&2; exit 1": false,
		"exec /bin/sleep 1000": false,
	} {
		testenv.Must(t, os.WriteFile(filepath.Join(dir, "docker"), []byte("#!/bin/sh\n"+script+"\n"), 0o755))
		if strings.Contains(script, "sleep") {
			dockercli.AnswerLimit = 50 * time.Millisecond
		}
		err := rt.Check(context.Background(), runtime.Spec{Chain: "c", Function: chain.Function{Name: "f"}})
		if gone := errors.As(err, new(*runtime.GoneError)); gone != want || (err == nil) != (script == "echo 7") {
			t.Errorf("%s: %v", script, err)
		}
		dockercli.AnswerLimit = testenv.Patient(10 * time.Second)
	}
}
