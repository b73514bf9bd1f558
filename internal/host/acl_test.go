// SPDX-License-Identifier: Apache-2.0

package host

import (
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// TestShareDir makes and removes files in a shared directory as its owner, as the
// other user and as a third user.
func TestShareDir(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root, to be several users")
	}
	const owner, other, third = 0x10000001, 0x10000002, 0x10000003
	top, err := os.MkdirTemp("/tmp", "dray-share-") // all users can enter its parents
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(top) })
	dir := filepath.Join(top, "shared")
	if err := os.Chmod(top, 0o711); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(dir, owner, owner); err != nil {
		t.Fatal(err)
	}
	as := func(uid uint32, program string, args ...string) bool {
		cmd := exec.Command(program, args...)
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: uid}}
		return cmd.Run() == nil
	}
	if as(other, "touch", dir+"/early") {
		t.Fatal("the other user gets in before: the probe proves nothing")
	}
	if err := LetIn(dir, other); err != nil {
		t.Fatal(err)
	}
	if !as(other, "ls", dir) || as(other, "touch", dir+"/u") || as(third, "ls", dir) {
		t.Error("LetIn: the other user cannot enter, or can make a file, or a third can enter")
	}
	const listen = `use Socket; umask 02; socket(S, AF_UNIX, SOCK_STREAM, 0); bind(S, sockaddr_un($ARGV[0])) && listen(S, 1) or die $!; sleep 100`
	const connect = `use Socket; socket(S, AF_UNIX, SOCK_STREAM, 0); connect(S, sockaddr_un($ARGV[0])) or die $!`
	if err := LetConnect(dir, other); err != nil {
		t.Fatal(err)
	}
	server := exec.Command("perl", "-e", listen, dir+"/s")
	server.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: owner, Gid: owner}}
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Process.Kill(); _ = server.Wait() })
	for deadline := time.Now().Add(30 * time.Second); !as(owner, "perl", "-e", connect, dir+"/s"); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the owner does not listen")
		}
	}
	if !as(other, "perl", "-e", connect, dir+"/s") || as(other, "rm", "-f", dir+"/s") || as(third, "perl", "-e", connect, dir+"/s") {
		t.Error("LetConnect: the other user cannot connect, or can remove the socket, or a third can connect")
	}
	if err := ShareDir(dir, other); err != nil {
		t.Fatal(err)
	}
	checks := []struct {
		what string
		got  bool
		want bool
	}{
		{"the owner makes a file", as(owner, "touch", dir+"/o"), true},
		{"the other makes a file", as(other, "touch", dir+"/u"), true},
		{"a third makes a file", as(third, "touch", dir+"/t"), false},
		{"a third reads the directory", as(third, "ls", dir), false},
		{"the other removes the owner's file", as(other, "rm", "-f", dir+"/o"), false},
		{"the owner removes the other's file", as(owner, "rm", "-f", dir+"/u"), true},
	}
	for _, c := range checks {
		if c.got != c.want {
			t.Errorf("%s: %v", c.what, c.got)
		}
	}
}
