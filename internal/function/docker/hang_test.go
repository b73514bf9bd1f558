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

	"github.com/drayage/dray/internal/function/child"
	"github.com/drayage/dray/internal/function/dockercli"
	"github.com/drayage/dray/internal/function/runtime"
	"github.com/drayage/dray/internal/host"
	"github.com/drayage/dray/internal/host/step"
	"github.com/drayage/dray/internal/spec/chain"
	"github.com/drayage/dray/internal/spec/inventory"
	"github.com/drayage/dray/test/testenv"
)

// hangingClient is the directory of a docker client that never answers.
func hangingClient(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "docker"), []byte("#!/bin/sh\nexec /bin/sleep 1000\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir)
	return dir
}

// TestACreationThatHangsEnds: the client that creates a container is killed, by this dray, or by
// the one that removes what a killed dray left.
func TestACreationThatHangsEnds(t *testing.T) {
	testenv.Root(t)
	defer func(before time.Duration) { creationLimit = before }(creationLimit)
	creationLimit = 50 * time.Millisecond
	hangingClient(t)
	s := runtime.Spec{Cgroup: host.Cgroup{Path: "/dray-test-create/x"}}
	t.Cleanup(func() {
		res := host.CgroupResource(host.Cgroup{Path: "/dray-test-create"})
		testenv.Must(t, host.Removers()[res.Kind](context.Background(), res))
	})
	testenv.Must(t, createCgroup(s).Create(host.Limits{}))
	r := New(Options{Client: dockercli.Client{Host: "unix:///nowhere"}})
	if err := r.create(s, "create"); err == nil || !strings.Contains(err.Error(), "does not answer within") {
		t.Errorf("create: %v", err)
	}
	c, err := child.Start(host.Place{Cgroup: createCgroup(s)}, r.Client.Command(context.Background(), "create"), nil)
	testenv.Must(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := awaitCreation(ctx, s.Cgroup); !errors.Is(err, context.Canceled) {
		t.Errorf("interrupted: %v", err)
	}
	if err := awaitCreation(context.Background(), s.Cgroup); err != nil {
		t.Error(err)
	}
	if pids, err := createCgroup(s).Processes(); err != nil || len(pids) > 0 {
		t.Errorf("clients %v live on: %v", pids, err)
	}
	testenv.Must(t, child.KillSession(c.PID()))
	<-c.Done()
}

// TestADaemonThatHangsIsNotWaitedFor: removing a function's containers ends, and
// names the daemon that does not answer.
func TestADaemonThatHangsIsNotWaitedFor(t *testing.T) {
	testenv.Root(t)
	defer func(before time.Duration) { dockercli.AnswerLimit = before }(dockercli.AnswerLimit)
	dockercli.AnswerLimit = 50 * time.Millisecond
	dir := hangingClient(t)
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

// TestWhatADaemonsAnswerMeans to root, and to a user whom the daemon may not let in.
func TestWhatADaemonsAnswerMeans(t *testing.T) {
	r := New(Options{Client: dockercli.Client{Host: "unix:///x"}})
	refused := &dockercli.Error{Verb: "version", Stderr: "permission denied", Err: errors.New("exit status 1")}
	noDaemon := func(said string) error {
		return &dockercli.Error{Verb: "version", Stderr: said, Err: errors.New("exit status 1")}
	}
	notTried := inventory.NotTried("docker")
	for _, test := range []struct {
		err    error
		uid    int
		status inventory.Status
		reason string
	}{
		{nil, 1000, inventory.OK, ""},
		{refused, 1000, notTried.Status, notTried.Reason},
		{refused, 0, inventory.Unknown, "permission denied"},
		{&dockercli.Error{Err: &host.Unsupported{Why: "the program docker is not installed"}}, 1000, inventory.Missing, "not installed"},
		{&dockercli.Error{Err: r.Client.Hangs(time.Second)}, 1000, inventory.Unknown, "does not answer within 1s"},
		{noDaemon("Cannot connect to the Docker daemon at unix:///x"), 1000, inventory.Missing, "no docker daemon responds"},
		{noDaemon("failed to connect to the docker API at unix:///x"), 0, inventory.Missing, "no docker daemon responds"},
	} {
		if got := r.item(test.err, test.uid); got.Status != test.status || !strings.Contains(got.Reason, test.reason) {
			t.Errorf("%v for user %d: %+v", test.err, test.uid, got)
		}
	}
}

// TestTheMarkIsTheLast variable, so that it counts: by it a program is found and killed.
func TestTheMarkIsTheLast(t *testing.T) {
	s := runtime.Spec{Function: chain.Function{Env: map[string]string{execMark: "x", "TERM": "dumb"}}}
	flags := strings.Join(execFlags(s, "mark", runtime.Stdio{Terminal: &runtime.Terminal{Name: "dumb"}}), " ")
	if last := flags[strings.LastIndex(flags, execMark):]; !strings.HasPrefix(last, execMark+"=mark") || !strings.Contains(flags, execMark+"=x") {
		t.Errorf("got %s", flags)
	}
}
