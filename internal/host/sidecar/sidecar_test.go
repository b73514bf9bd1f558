// SPDX-License-Identifier: Apache-2.0

package sidecar

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/drayage/dray/internal/host"
	"github.com/drayage/dray/internal/host/step"
	"github.com/drayage/dray/test/testenv"
)

// Users of the host: the owner of a link's sockets, and another.
const (
	ownUser   = 0x6ffe0000
	otherUser = 0x6ffe0001
)

type noJournal struct{}

func (noJournal) Append(...step.Resource) error { return nil }

// prepared is a sidecar in its own test directory, made but not started.
func prepared(t *testing.T, change func(*Process)) Process {
	t.Helper()
	testenv.Root(t)
	testenv.Program(t, "runc")
	dir, err := os.MkdirTemp("/run", "dray-sidecar-")
	if err != nil {
		t.Fatal(err)
	}
	name := filepath.Base(dir)
	testenv.NoLeaks(t, name)
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o711); err != nil {
		t.Fatal(err)
	}
	p := Process{
		Name: "sleep", Dir: filepath.Join(dir, "switch"), Cgroup: host.Cgroup{Path: "/dray-test-sidecar/" + name}, Owner: name,
		Args: []string{"/usr/bin/sleep", "600"}, Binds: []Bind{{Source: filepath.Join(dir, "own"), Target: "/links/1"}}, Files: []int{ownUser},
	}
	for _, sub := range []string{"own", "neighbour"} {
		path := filepath.Join(dir, sub)
		if err := os.Mkdir(path, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.Chown(path, ownUser, ownUser); err != nil {
			t.Fatal(err)
		}
		if err := Admit(path, p.Owner); err != nil {
			t.Fatal(err)
		}
	}
	if change != nil {
		change(&p)
	}
	runner := step.Runner{Journal: noJournal{}, Removers: host.Removers()}
	steps := p.Steps(func(what string) string { return what })
	var made []step.Resource
	for _, s := range steps {
		made = append(made, s.Makes...)
	}
	t.Cleanup(func() {
		if err := runner.Remove(context.Background(), made); err != nil {
			t.Error(err)
		}
	})
	if err := runner.Run(context.Background(), steps); err != nil {
		t.Fatal(err)
	}
	return p
}

func started(t *testing.T, change func(*Process)) (Process, host.ProcessID) {
	t.Helper()
	p := prepared(t, change)
	id, err := p.Start(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	return p, id
}

// listen makes a socket like an application of that user.
func listen(t *testing.T, dir string, user int) string {
	t.Helper()
	path := filepath.Join(dir, fmt.Sprintf("sock%x", user))
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	if err := errors.Join(os.Chown(path, user, -1), os.Chmod(path, 0o755)); err != nil {
		t.Fatal(err)
	}
	return filepath.Base(path)
}

const connect = `use Socket; socket(S, AF_UNIX, SOCK_STREAM, 0); connect(S, sockaddr_un($ARGV[0])) or die $!`

// TestReachesOwnSockets: the sidecar can open its own functions' sockets despite
// their mode, and no others.
func TestReachesOwnSockets(t *testing.T) {
	p, _ := started(t, nil)
	dir := p.Binds[0].Source
	own, other := listen(t, dir, ownUser), listen(t, dir, otherUser)
	if _, err := p.Exec(context.Background(), "/usr/bin/perl", "-e", connect, "/links/1/"+own); err != nil {
		t.Errorf("the sidecar cannot reach its own link's socket: %v", err)
	}
	if _, err := p.Exec(context.Background(), "/usr/bin/perl", "-e", connect, "/links/1/"+other); err == nil || !strings.Contains(err.Error(), "Permission denied") {
		t.Errorf("the sidecar reaches another user's socket: %v", err)
	}
	none, _ := started(t, func(p *Process) { p.Files = nil })
	own = listen(t, none.Binds[0].Source, ownUser)
	if _, err := none.Exec(context.Background(), "/usr/bin/perl", "-e", connect, "/links/1/"+own); err == nil || !strings.Contains(err.Error(), "Permission denied") {
		t.Errorf("a sidecar without Files reaches a socket: %v; the test proves nothing", err)
	}
}

// TestConfinement tries the actions of a compromised switch: each succeeds on the
// host and fails inside.
func TestConfinement(t *testing.T) {
	p, id := started(t, nil)
	neighbour := filepath.Join(filepath.Dir(p.Dir), "neighbour")
	listen(t, neighbour, ownUser)
	pid := fmt.Sprint(os.Getpid())
	network, err := os.Readlink("/proc/self/ns/net")
	if err != nil {
		t.Fatal(err)
	}
	for what, script := range map[string]string{
		"list the neighbour's sockets": "ls " + neighbour + "/sock*",
		"see the host's configuration": "test -e /etc/passwd",
		"see the state directory":      "test -d " + p.Dir,
		"signal a process of the host": "kill -0 " + pid,
		"read a process's memory map":  "test -r /proc/" + pid + "/maps",
		"be in the host's network":     "test $(readlink /proc/self/ns/net) = " + network,
		"make a user namespace":        "unshare --user true",
		"watch files":                  "perl -e 'syscall(" + fmt.Sprint(unix.SYS_INOTIFY_INIT1) + ", 0) >= 0 or exit 1'",
		"have 5,000 timers":            "perl -e 'my $id = \"\\0\" x 8; syscall(" + fmt.Sprint(unix.SYS_TIMER_CREATE) + ", 1, 0, $id) == 0 or exit 1 for 1 .. 5000'",
		"mount":                        "unshare --mount sh -c 'mount -t tmpfs none /mnt'",
		"write to its own directory":   "touch /links/1/x 2>/dev/null || touch " + filepath.Join(filepath.Dir(p.Dir), "own", "x"),
		"write to /usr":                "touch /usr/.dray-sidecar-test && rm /usr/.dray-sidecar-test",
	} {
		if out, err := exec.Command("sh", "-c", script).CombinedOutput(); err != nil {
			t.Errorf("on the host one cannot %s, so the test proves nothing: %v: %s", what, err, out)
		}
		if out, err := p.Exec(context.Background(), "/usr/bin/sh", "-c", script); err == nil {
			t.Errorf("the sidecar can %s: %s", what, out)
		}
	}
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", id.PID))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		fmt.Sprintf("Uid:\t%d", UID(p.Owner)), "CapEff:\t0000000000000002", "CapBnd:\t0000000000000002",
		"NoNewPrivs:\t1", "Seccomp:\t2",
	} {
		if !strings.Contains(string(status), want) {
			t.Errorf("the process lacks %q:\n%s", want, status)
		}
	}
}

// TestNoFilesNoCapability: a process without sockets has no capability.
func TestNoFilesNoCapability(t *testing.T) {
	p, _ := started(t, func(p *Process) { p.Files = nil })
	if out, err := p.Exec(context.Background(), "/usr/bin/grep", "CapEff", "/proc/1/status"); err != nil || !strings.HasSuffix(out, "0000000000000000") {
		t.Errorf("%q, %v", out, err)
	}
}

// TestStartAgain: a killed process is started again, and a running one is replaced.
func TestStartAgain(t *testing.T) {
	p, first := started(t, nil)
	if !first.Signal(syscall.SIGKILL) {
		t.Fatal("the process does not run")
	}
	second, err := p.Start(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	third, err := p.Start(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	if first.Alive() || second.Alive() || !third.Alive() {
		t.Errorf("of three instances run: %v %v %v", first.Alive(), second.Alive(), third.Alive())
	}
}

// TestEndsAtOnce: the error for an early end quotes the log.
func TestEndsAtOnce(t *testing.T) {
	p := prepared(t, func(p *Process) { p.Args = []string{"/usr/bin/sh", "-c", "echo no such socket; exit 3"} })
	began := time.Now()
	id, err := p.Start(context.Background())
	if err == nil {
		err = p.Await(context.Background(), id, func() bool { return false })
	}
	if err == nil || !strings.Contains(err.Error(), "no such socket") || time.Since(began) > startTimeout/2 {
		t.Errorf("after %s: %v", time.Since(began), err)
	}
}

// TestAFloodStaysSmall: a process that prints without end fills neither the state
// directory nor memory, and works on.
func TestAFloodStaysSmall(t *testing.T) {
	p := prepared(t, func(p *Process) {
		p.Args = []string{"/usr/bin/sh", "-c", "head -c 100000000 /dev/zero; exec sleep 600"}
	})
	id, err := p.Start(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Await(context.Background(), id, func() bool {
		name, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", id.PID))
		return err == nil && string(name) == "sleep\n"
	}); err != nil {
		t.Fatal(err)
	}
	if size := p.LogSize(); size < logsSize/2 || size > logsSize {
		t.Errorf("its log has %d bytes", size)
	}
}

func TestProgramMissing(t *testing.T) {
	p := prepared(t, func(p *Process) { p.Args = []string{"/usr/bin/no-such-switch"} })
	if _, err := p.Start(context.Background()); err == nil || !strings.Contains(err.Error(), "no-such-switch") {
		t.Errorf("%v", err)
	}
}

// TestBundle: a process gets only what it asks for beyond the minimum.
func TestBundle(t *testing.T) {
	testenv.Root(t)
	plain := Process{Name: "x", Dir: "/run/x", Owner: "a/b", Args: []string{"/usr/bin/true"}}
	spec, err := plain.ociSpec()
	if err != nil {
		t.Fatal(err)
	}
	if n := len(spec.Process.Capabilities.Bounding); n != 0 || !spec.Root.Readonly {
		t.Errorf("%+v", spec.Process)
	}
	allowed := func(call string) bool {
		for _, rule := range spec.Linux.Seccomp.Syscalls {
			if slices.Contains(rule.Names, call) && rule.Action == "SCMP_ACT_ALLOW" && len(rule.Args) == 0 {
				return true
			}
		}
		return false
	}
	if allowed("mbind") || !allowed("sendmsg") {
		t.Error("the seccomp profile is not the default one")
	}
	more := plain
	more.HugePages, more.Caps = true, []string{"CAP_NET_ADMIN"}
	if spec, err = more.ociSpec(); err != nil {
		t.Fatal(err)
	}
	if !allowed("mbind") || spec.Process.Capabilities.Effective[0] != "CAP_NET_ADMIN" {
		t.Errorf("%+v", spec.Process)
	}
}

// TestUID: no function uses the users of sidecars (from 0x10000000 on).
func TestUID(t *testing.T) {
	for _, owner := range []string{"", "a/b", "chain/link", strings.Repeat("x", 300)} {
		if id := UID(owner); id < firstID || id >= 0x10000000 || id != UID(owner) {
			t.Errorf("%q has the user %#x", owner, id)
		}
	}
}

// TestRuncMayTakeAsLongAsTheProcess that it starts.
func TestRuncMayTakeAsLongAsTheProcess(t *testing.T) {
	if limit := (Process{}).container().Helper(host.Place{}, "run").Limit; limit < startTimeout {
		t.Errorf("runc has %v, less than %v", limit, startTimeout)
	}
}
