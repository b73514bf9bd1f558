// SPDX-License-Identifier: Apache-2.0

package host

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/drayage/dray/test/testenv"
)

func TestProcessID(t *testing.T) {
	self, err := Identify(os.Getpid())
	must(t, err)
	if !self.Alive() || self.Start == 0 || self.Boot == "" {
		t.Errorf("%+v", self)
	}
	for name, other := range map[string]ProcessID{
		"an earlier process with this pid": {PID: self.PID, Start: self.Start - 1, Boot: self.Boot},
		"a process of another boot":        {PID: self.PID, Start: self.Start, Boot: "another"},
		"the zero value":                   {},
	} {
		if other.Alive() {
			t.Error(name, "is alive")
		}
		if other.Signal(syscall.SIGKILL) { // would end this test
			t.Error(name, "was signalled")
		}
	}
	if _, err := Identify(1 << 30); err == nil {
		t.Error("identified a process that cannot exist")
	}
}

func TestProcessIDOfOddName(t *testing.T) {
	// The name in /proc/PID/stat is in parentheses and may contain some itself.
	script := t.TempDir() + "/a) Z 1 (b"
	must(t, os.WriteFile(script, []byte("#!/bin/sh\nread x\n"), 0o700))
	cmd := exec.Command(script)
	stdin, err := cmd.StdinPipe()
	must(t, err)
	must(t, cmd.Start())
	defer func() {
		stdin.Close()
		_ = cmd.Wait()
	}()
	id, err := Identify(cmd.Process.Pid)
	must(t, err)
	if !id.Alive() {
		t.Error("not alive")
	}
	if !id.Signal(syscall.SIGKILL) {
		t.Error("not signalled")
	}
	waitFor(t, "the process to die", func() bool { return !id.Alive() }) // though still a zombie
	if id.Signal(0) {
		t.Error("signalled a zombie")
	}
}

// TestPlaceIsNetnsAndCgroup: a program starts in both, and its children too.
func TestPlaceIsNetnsAndCgroup(t *testing.T) {
	testenv.Root(t)
	ns, c := testNetns(t), testCgroup(t)
	must(t, c.Create(Limits{}))
	cmd := exec.Command("sh", "-c", "readlink /proc/self/ns/net; grep -c "+c.Path+" /proc/self/cgroup")
	var out bytes.Buffer
	cmd.Stdout = &out
	must(t, Place{Netns: ns, Cgroup: c}.Start(cmd))
	must(t, cmd.Wait())
	inode, err := ns.Inode()
	must(t, err)
	dirs, err := c.dirs()
	must(t, err)
	if want := "net:[" + strconv.FormatUint(inode, 10) + "]\n" + itoa(len(dirs)) + "\n"; out.String() != want {
		t.Errorf("%q, want %q", out.String(), want)
	}
	if cmd.SysProcAttr.UseCgroupFD {
		t.Error("the command still names a descriptor that is closed")
	}
}

func TestAwaitEnd(t *testing.T) {
	cmd := exec.Command("cat")
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	id, err := Identify(cmd.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	short, cancel := context.WithTimeout(context.Background(), 10*time.Millisecond)
	defer cancel()
	if err := id.AwaitEnd(short); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("while it runs: %v", err)
	}
	stdin.Close() // cat ends, and is a zombie
	if err := id.AwaitEnd(context.Background()); err != nil {
		t.Errorf("a zombie: %v", err)
	}
	if err := cmd.Wait(); err != nil {
		t.Fatal(err)
	}
	if err := id.AwaitEnd(context.Background()); err != nil {
		t.Errorf("after it was reaped: %v", err)
	}
	id.PID, id.Start = os.Getpid(), id.Start+1 // its pid was reused
	if err := id.AwaitEnd(context.Background()); err != nil {
		t.Errorf("another process with its pid: %v", err)
	}
}
