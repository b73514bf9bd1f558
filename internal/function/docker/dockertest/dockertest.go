// SPDX-License-Identifier: Apache-2.0

// Package dockertest runs a docker daemon for tests: its own socket, data and
// namespaces separate it from any daemon of the host.
package dockertest

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/drayage/dray/internal/function/dockercli"
	"github.com/drayage/dray/test/testenv"
)

const patience = 60 * time.Second

// Start starts a daemon, which is stopped and removed at the end of the test.
func Start(t testing.TB) dockercli.Client {
	t.Helper()
	testenv.Root(t)
	testenv.Program(t, "docker", "dockerd", "containerd")
	dir, err := os.MkdirTemp("/run", "dray-test-dockerd-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		// What the daemon started may still be writing as it ends.
		err := os.RemoveAll(dir)
		for end := time.Now().Add(10 * time.Second); err != nil && time.Now().Before(end); err = os.RemoveAll(dir) {
			time.Sleep(100 * time.Millisecond)
		}
		if err != nil {
			t.Error(err)
		}
	})
	if err := os.Chmod(dir, 0o711); err != nil { // containers of other users need access
		t.Fatal(err)
	}
	in := func(name string) string { return filepath.Join(dir, name) }
	log, err := os.Create(in("log"))
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	client := dockercli.Client{Host: "unix://" + in("docker.sock")}
	daemon := exec.Command("dockerd", "--host", client.Host, "--data-root", in("data"), "--exec-root", in("exec"),
		"--pidfile", in("pid"), "--bridge", "none", "--iptables=false", "--ip6tables=false")
	daemon.Stdout, daemon.Stderr = log, log
	// Its mounts always vanish with its mount namespace. In the host's network
	// namespace "--bridge none" would delete docker0.
	daemon.SysProcAttr = &syscall.SysProcAttr{Unshareflags: unix.CLONE_NEWNS | unix.CLONE_NEWNET, Setsid: true}
	if err := daemon.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		_ = daemon.Wait()
		close(ended)
	}()
	t.Cleanup(func() {
		explain(t, ended, in("log"))
		stop(t, daemon, ended)
	})
	await(t, client, ended, in("log"))
	return client
}

// explain shows what the daemon logged, for a test that failed.
func explain(t testing.TB, ended <-chan struct{}, log string) {
	if !t.Failed() {
		return
	}
	state := "still runs"
	select {
	case <-ended:
		state = "has ended"
	default:
	}
	text, _ := os.ReadFile(log)
	t.Logf("dockerd %s:\n%s", state, text[max(0, len(text)-8000):])
}

func stop(t testing.TB, daemon *exec.Cmd, ended <-chan struct{}) {
	_ = daemon.Process.Signal(syscall.SIGTERM)
	select {
	case <-ended:
	case <-time.After(patience):
		t.Error("dockerd does not end")
		_ = unix.Kill(-daemon.Process.Pid, unix.SIGKILL) // with its containerd
		<-ended
	}
}

func await(t testing.TB, client dockercli.Client, ended <-chan struct{}, log string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	for {
		if _, err := client.Output(ctx, "version", "--format", "{{.Server.Version}}"); err == nil {
			return
		}
		select {
		case <-ended:
		case <-ctx.Done():
		case <-time.After(50 * time.Millisecond):
			continue
		}
		text, _ := os.ReadFile(log)
		t.Fatalf("dockerd does not answer:\n%s", text)
	}
}

// BuildPause builds the static pause program, for tests that are not dray.
func BuildPause(t testing.TB) string {
	t.Helper()
	testenv.Program(t, "go")
	// /run: a container must be able to bind it, even if /tmp is private.
	dir, err := os.MkdirTemp("/run", "dray-test-pause-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o711); err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(dir, "pause")
	build := exec.Command("go", "build", "-o", program, "github.com/drayage/dray/internal/function/docker/dockertest/pause")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build the pause program: %v\n%s", err, out)
	}
	return program
}
