// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/drayage/dray/test/testenv"
)

// TestADaemonThatNeverAnswersHoldsNobodyUp: a chain without Docker does not ask for it, and
// one with it says that it does not answer.
func TestADaemonThatNeverAnswersHoldsNobodyUp(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	testenv.Program(t, "docker")
	socket := filepath.Join(t.TempDir(), "docker.sock")
	deaf, err := net.Listen("unix", socket)
	testenv.Must(t, err)
	defer deaf.Close()
	b.env = []string{"DOCKER_HOST=unix://" + socket}

	b.want(0, "plan", b.file(pair{Name: "without"}.yaml()))
	if connected(t, deaf) {
		t.Error("the plan of a chain without Docker asks for Docker")
	}
	with := b.file(pair{Name: "with", Runtime: "docker", Image: "debian"}.yaml())
	r := b.want(3, "plan", with)
	if text := r.Stdout + r.Err; !strings.Contains(text, "does not answer within 20s") || strings.Contains(text, "apt-get") {
		t.Errorf("%s", r)
	}
	if !connected(t, deaf) {
		t.Error("the plan of a chain with Docker does not ask for Docker")
	}
}

// connected reports whether a connection waits for its acceptance.
func connected(t *testing.T, l net.Listener) bool {
	t.Helper()
	raw, err := l.(*net.UnixListener).SyscallConn()
	testenv.Must(t, err)
	n := 0
	polled := raw.Control(func(fd uintptr) {
		n, err = unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 0)
	})
	testenv.Must(t, errors.Join(polled, err))
	return n > 0
}

// TestAFailedProbeSaysWhy: a program that cannot be tried is not called missing.
func TestAFailedProbeSaysWhy(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	file := b.file(pair{Name: "few", Runtime: "runc"}.yaml())
	cmd := b.command(context.Background(), "plan", file)
	cmd.Path, cmd.Args = "/bin/sh", append([]string{"sh", "-c", `ulimit -n 16; exec "$0" "$@"`, program}, cmd.Args[1:]...)
	r := b.ended(cmd)
	if text := r.Stdout + r.Err; r.Code != 3 || !strings.Contains(text, "too many open files in this process") || strings.Contains(text, "apt") {
		t.Errorf("with 16 descriptors: %s", r)
	}
}

// TestAFullStateDirectory ends dray up with an error that names the file system, and dray
// status shows what has ended although its supervisor cannot say so.
func TestAFullStateDirectory(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	testenv.Must(t, unix.Mount("tmpfs", b.state, "tmpfs", 0, "size=8m,mode=711"))
	t.Cleanup(func() { testenv.Must(t, unix.Unmount(b.state, 0)) })
	ballast := filepath.Join(b.state, ".ballast")
	fill := func(leave int64) {
		f, err := os.Create(ballast)
		testenv.Must(t, err)
		defer f.Close()
		size := int64(0)
		for err == nil { // until nothing is left
			var n int
			n, err = f.Write(make([]byte, 4096))
			size += int64(n)
		}
		testenv.Must(t, f.Truncate(size-leave))
	}
	for _, face := range []string{"netdev", "native"} {
		file := b.file(pair{Name: "full", Face: face, Command: `[sleep, "1000"]`}.yaml())
		fill(20 << 10)
		if r := b.want(1, "up", file); !strings.Contains(r.Err, "the file system tmpfs at "+b.state+" has ") {
			t.Errorf("%s: %s", face, r)
		}
		testenv.Must(t, os.Remove(ballast))
		b.want(0, "up", file)
		fill(0)
		killFunction(t, b, "full", "a")
		b.shows("full", "does not record that")
		testenv.Must(t, os.Remove(ballast))
		b.shows("full", "failed")
		b.want(0, "down", "full")
	}
}

// shows waits until dray status of a chain has a text.
func (b *bench) shows(chain, text string) {
	b.t.Helper()
	var r result
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		if r = b.dray("status", chain); strings.Contains(r.Stdout, text) {
			return
		}
	}
	b.t.Errorf("dray status does not come to %q: %s", text, r)
}

// TestFileSystemsBelowUsrAndOpt: functions and switches in containers see them, and cannot
// write to them.
func TestFileSystemsBelowUsrAndOpt(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.env = append(b.env, "DRAY_LIB="+filepath.Dir(testenv.Built(t, "librte_net_dray.so")))
	opt, err := os.MkdirTemp("/opt", "dray-e2e-")
	testenv.Must(t, err)
	t.Cleanup(func() { testenv.Must(t, os.RemoveAll(opt)) })
	for face, transport := range map[string]string{"netdev": "veth", "native": "ovs-dray"} {
		file := b.file(pair{Name: "mounts", Runtime: "runc", Face: face, Transport: transport, Command: `[sleep, "1000"]`}.yaml())
		r := b.inOwn(longest, "--mount", `
mount -t tmpfs outer `+opt+` && mkdir `+opt+`/inner && mount -t tmpfs inner `+opt+`/inner && chmod 1777 `+opt+`/inner && echo here >`+opt+`/inner/file
mount -t tmpfs games /usr/games
"$dray" up `+file+` >&2
"$dray" exec mounts a -- cat `+opt+`/inner/file
"$dray" exec mounts a -- sh -c '! touch `+opt+`/inner/new' 2>/dev/null
"$dray" down mounts >&2`)
		if r.Code != 0 || strings.TrimSpace(r.Stdout) != "here" {
			t.Errorf("%s: %s", transport, r)
		}
	}
}

// inOwn runs a script in a namespace of its own, which an option of unshare names; $dray is the
// program.
func (b *bench) inOwn(limit time.Duration, namespace, script string) result {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	cmd := b.command(ctx, script)
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) } // with all that the script runs
	unshare, err := exec.LookPath("unshare")
	testenv.Must(b.t, err)
	cmd.Path, cmd.Args = unshare, []string{"unshare", namespace, "sh", "-ec", script}
	cmd.Env = append(cmd.Env, "dray="+program)
	return b.ended(cmd)
}
