// SPDX-License-Identifier: Apache-2.0

package host

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/drayage/dray/test/testenv"
)

// confinedUser has no other use.
const confinedUser = 0x0e7e5701

// testView is the host's root below a confined process's, plus the file systems
// that hold dir. One directory is hidden; shown ones are visible wherever they are.
func testView(t *testing.T, dir, hidden string, shown ...string) Confinement {
	t.Helper()
	var parts []string
	for d := dir; d != "/"; d = filepath.Dir(d) {
		points, err := MountsAt(d)
		must(t, err)
		if slices.Contains(points, d) {
			parts = append([]string{d}, parts...)
		}
	}
	return Confinement{
		User: confinedUser, Devices: []string{"/dev/null", "/dev/no-such-device"},
		Links: map[string]string{"bin": "usr/bin", "lib": "usr/lib", "lib64": "usr/lib64"},
		Views: []View{
			{Source: "/usr", Target: "/usr"},
			{Source: "/", Target: "/host", Parts: parts, Hidden: []string{hidden, "/no/such"}, Shown: shown},
		},
	}
}

// TestConfined tries the actions of a compromised process: each succeeds without
// the confinement.
func TestConfined(t *testing.T) {
	testenv.Root(t)
	dir := testDir(t)
	mounted := filepath.Join(dir, "mounted") // only a part of it is shown
	part := filepath.Join(dir, "part")       // shown, and named more than once
	for _, mount := range []string{mounted, part} {
		must(t, os.Mkdir(mount, 0o755))
		must(t, unix.Mount("tmpfs", mount, "tmpfs", 0, "mode=755"))
		t.Cleanup(func() { must(t, unix.Unmount(mount, unix.MNT_DETACH)) })
	}
	for _, sub := range []string{"", "part", "hidden", "hidden/sub", "hidden/sub/shown", "beside", "mounted/sub/shown", "mounted/sub/more"} {
		must(t, os.MkdirAll(filepath.Join(dir, sub), 0o755))
		must(t, os.WriteFile(filepath.Join(dir, sub, "file"), []byte("text\n"), 0o644))
	}
	must(t, os.WriteFile(filepath.Join(dir, "beside/secret"), []byte("text\n"), 0o600))
	must(t, os.Chmod(filepath.Join(dir, "hidden"), 0o700)) // a parent of shown parts
	hidden := filepath.Join(dir, "hidden")
	c := testView(t, dir, hidden, filepath.Join(hidden, "sub/shown"), filepath.Join(mounted, "sub/shown"), filepath.Join(mounted, "sub/more"), part)
	c.Views[1].Parts = append(c.Views[1].Parts, part, part)
	run := func(script, root string) (string, error) {
		var out bytes.Buffer
		cmd := exec.Command("/usr/bin/sh", "-c", script, "sh", root, dir, fmt.Sprint(os.Getpid()))
		cmd.Stdout, cmd.Stderr, cmd.Dir = &out, &out, "/"
		start := Place{}.Start
		if root != "" {
			start = func(cmd *exec.Cmd) error { return Place{}.StartConfined(cmd, c) }
		}
		must(t, start(cmd))
		err := cmd.Wait()
		return out.String(), err
	}
	may := []string{
		"cat $1$2/beside/file", "cat $1$2/part/file", "cat $1$2/hidden/sub/shown/file", "cat $1$2/mounted/sub/shown/file $1$2/mounted/sub/more/file", "echo >/dev/null", "test -e /proc/self/fd",
		"test $(id -u) = $(id -g)", "cat $1/usr/bin/sh >/dev/null",
	}
	defer unix.Umask(unix.Umask(0o022))
	for _, umask := range []int{0o077, 0o022} {
		unix.Umask(umask)
		for _, script := range may {
			if out, err := run(script, "/host"); err != nil {
				t.Errorf("with umask %#o, a confined process cannot %s: %v: %s", umask, script, err, out)
			}
		}
	}
	for _, script := range []string{
		"cat $1$2/beside/secret", "cat $1$2/hidden/file", "test -e $1$2/mounted/file || touch $1$2/mounted/file", "cat $1$2/hidden/sub/file", "cat $2/beside/file",
		"echo x >$1$2/beside/new", "echo x >$1$2/hidden/new", "touch /new-in-root && rm /new-in-root",
		"cat $1/etc/shadow", "cat <$1/dev/null || cat </dev/null && test -e /dev/zero",
		"test -e /proc/$3/status", "test -e /proc/meminfo", "kill -0 $3", "cat $1/proc/meminfo", "cat $1/sys/kernel/mm/transparent_hugepage/enabled",
		"grep -q 'CapBnd.*[1-9a-f]' /proc/self/status", "grep -q 'NoNewPrivs:.0' /proc/self/status", "test $(id -u) = 0",
	} {
		if out, err := run(script, ""); err != nil {
			t.Errorf("without confinement one cannot %s, so the test proves nothing: %v: %s", script, err, out)
		}
		if out, err := run(script, "/host"); err == nil {
			t.Errorf("a confined process can %s: %s", script, out)
		}
	}
	points, err := MountsAt(dir)
	if err != nil || len(points) != 2 {
		t.Errorf("mounts are left: %v, %v", points, err)
	}
}

func TestConfinedAsRoot(t *testing.T) {
	if err := (Place{}).StartConfined(exec.Command("/usr/bin/true"), Confinement{}); err == nil || !strings.Contains(err.Error(), "user 0") {
		t.Errorf("%v", err)
	}
}

// TestTapFile: the interface exists as long as its file is open.
func TestTapFile(t *testing.T) {
	testenv.Root(t)
	if err := ProbeTap(); err != nil {
		t.Skip(err)
	}
	ns := Netns{Path: filepath.Join(testDir(t), "net")}
	must(t, CreateNetns(ns.Path))
	t.Cleanup(func() { must(t, removeNamespace(ns.Path)) })
	f, err := ns.OpenTap("tap0")
	must(t, err)
	if names, err := ns.Interfaces(); err != nil || len(names) != 1 {
		t.Errorf("%v, %v", names, err)
	}
	if _, err := ns.OpenTap("tap0"); err == nil || !strings.Contains(err.Error(), "tap0") {
		t.Errorf("a second one of that name: %v", err)
	}
	must(t, f.Close())
	if names, err := ns.Interfaces(); err != nil || len(names) != 0 {
		t.Errorf("after its end: %v, %v", names, err)
	}
}
